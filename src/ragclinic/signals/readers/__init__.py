"""Every format that can be read. To add one: a file beside this, its import, its line in `READERS`, a sample.

docs/adding/reader.md shows the steps. The most specific formats stand first; of readers equally sure the first
wins.
"""

from ragclinic.signals.readers import (
    amd_smi,
    bpftrace,
    jaeger,
    json_lines,
    langfuse,
    langsmith,
    log_llamacpp,
    log_ollama,
    log_ollama_ps,
    log_ollama_verbose,
    log_ragflow,
    log_sglang,
    log_tgi,
    log_vllm,
    nsight,
    nvidia_csv,
    nvidia_dmon,
    nvidia_query,
    otlp_json,
    otlp_proto,
    perf_folded,
    perf_script,
    prometheus_query,
    prometheus_remote,
    prometheus_text,
    torch_oom,
    torch_snapshot,
    torch_stats,
    torch_summary,
    workloads_chat,
    workloads_csv,
    workloads_mooncake,
    workloads_ragpulse,
    zipkin,
)
from ragclinic.signals.readers.reader import Bad, Origin, Reader, ReadLog, ReadOptions, Rows

READERS: tuple[Reader, ...] = (
    otlp_json.READER,
    otlp_proto.READER,
    jaeger.READER,
    zipkin.READER,
    langfuse.READER,
    langsmith.READER,
    prometheus_query.READER,
    prometheus_remote.READER,
    prometheus_text.READER,
    nvidia_csv.READER,
    nvidia_dmon.READER,
    nvidia_query.READER,
    amd_smi.READER,
    torch_summary.READER,
    torch_stats.READER,
    torch_snapshot.READER,
    nsight.READER,
    bpftrace.READER,
    perf_script.READER,
    log_ollama.READER,
    log_ollama_ps.READER,
    log_ollama_verbose.READER,
    log_vllm.READER,
    log_sglang.READER,
    log_tgi.READER,
    log_llamacpp.READER,
    log_ragflow.READER,
    torch_oom.READER,
    perf_folded.READER,
    workloads_ragpulse.LENGTHS_READER,
    workloads_ragpulse.READER,
    workloads_mooncake.READER,
    workloads_csv.AZURE_READER,
    workloads_csv.BURSTGPT_READER,
    workloads_chat.READER,
    json_lines.READER,
)

SURE_ENOUGH = 0.5
"""Below this no reader claims an input: a wrong reader costs more than a clear refusal."""


def reader_for(head: bytes) -> Reader | None:
    """The reader that is surest of an input with this beginning, or None."""
    best, certainty = None, SURE_ENOUGH
    for reader in READERS:
        sure = reader.sniff(head)
        if sure > certainty or (best is None and sure >= certainty):
            best, certainty = reader, sure
    return best


__all__ = ["READERS", "Bad", "Origin", "ReadLog", "ReadOptions", "Reader", "Rows", "reader_for"]
