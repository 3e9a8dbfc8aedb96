"""Two short calls when a recording begins, so that the time for each token is known at more than one length.

A service whose prompts are all of one length tells nothing about shorter ones, and a prediction is about those.
Recorded with kind `probe`, they are calibration and no user's requests.
"""

from ragclinic.engine.llm.backend import Llm
from ragclinic.engine.pipeline import generation_stages
from ragclinic.engine.recorder import Recorder
from ragclinic.engine.settings import Settings
from ragclinic.engine.trace import RequestTrace
from ragclinic.signals.requests import KIND

WORDS = (
    "water",
    "stone",
    "light",
    "river",
    "paper",
    "glass",
    "metal",
    "cloud",
    "field",
    "house",
    "table",
    "ocean",
)
WARM_UP = (8, 2)
PROBES = ((64, 24), (320, 8))
"""Words of prompt and tokens of answer; short and middling, about 4 s together on two slow cores."""


def probe(llm: Llm, settings: Settings, recorder: Recorder) -> None:
    """Makes the calls, one after the other; the first warms the server up and is not recorded."""
    for words, max_tokens in (WARM_UP, *PROBES):
        # A prompt of its own for each length: a shared prefix would be cached and cost nothing.
        text = " ".join(WORDS[(i * (words + 3) + i // 7) % len(WORDS)] for i in range(words))
        trace = RequestTrace()
        generation = llm.chat(
            [{"role": "user", "content": f"{words} {text}\nWrite a long story."}], max_tokens, lambda _: None
        )
        trace.stages += generation_stages(generation, settings)
        trace.first_byte_ns = generation.first_text_ns
        trace.attributes[KIND] = "probe"
        trace.finish()
        if (words, max_tokens) != WARM_UP:
            recorder.request(trace)
