"""The LLM: a llama.cpp server in a process of its own, or any OpenAI-compatible endpoint, behind one client."""
