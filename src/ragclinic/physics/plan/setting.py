"""What is asked of a plan: one model on some devices behind one server, for some users."""

from dataclasses import dataclass, replace

from ragclinic.physics.hardware import Device
from ragclinic.physics.memory import USABLE_SHARE, Budget, Demand, budget, shard
from ragclinic.physics.models import Model
from ragclinic.physics.precision import KvType, WeightType
from ragclinic.physics.roofline import MARLIN, Kernel, Rates, StepCost, host_ms, step_cost
from ragclinic.physics.simulator import VLLM, Profile, Server


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `context_tokens` is prompt and answer together, `output_tokens` the answer's part of it.

    Each of `users` asks once every `every_s` seconds. `compression` is the share of the prompt that is kept (1:
    all). `stored` takes the weights' size from the model's own file instead of the weight type. The objective
    `slo_ms` is on the P95 of the time to the first token.
    """

    model: Model
    device: Device
    context_tokens: int
    users: int
    slo_ms: float
    kv: KvType
    weights: WeightType
    output_tokens: int = 256
    every_s: float = 60.0
    profile: Profile = VLLM
    tensor: int = 1
    pipeline: int = 1
    replicas: int = 1
    compression: float = 1.0
    stored: bool = False
    usable_share: float = USABLE_SHARE
    kernel: Kernel = MARLIN
    rates: Rates | None = None
    tenant_share: float | None = None

    @property
    def prompt_tokens(self) -> int:
        """Tokens of one prompt, after compression."""
        return max(1, round((self.context_tokens - self.output_tokens) * self.compression))

    @property
    def held_tokens(self) -> int:
        """Tokens that one request holds at its end."""
        return self.prompt_tokens + self.output_tokens

    @property
    def rate_per_s(self) -> float:
        """Requests a second from all users."""
        return self.users / self.every_s

    @property
    def devices(self) -> int:
        """How many devices the setting needs."""
        return self.tensor * self.pipeline * self.replicas

    def budget(self) -> Budget:
        """The memory of the fullest device, with an even part of the users on each replica."""
        return budget(
            shard(self.model, self.tensor, self.pipeline),
            Demand(
                context_tokens=self.held_tokens,
                sequences=-(-self.users // self.replicas),
                kv=self.kv,
                weights=None if self.stored else self.weights,
                block_tokens=self.profile.block_tokens,
                step_tokens=self.profile.step_tokens,
                step_sequences=self.profile.sequences,
                accelerator=self.device.kind != "cpu",
            ),
            self.device.memory_bytes,
            self.usable_share,
        )

    def cost(self) -> StepCost:
        """The time of this engine's steps."""
        return step_cost(
            self.model,
            self.device,
            self.kv,
            self.weights,
            tensor=self.tensor,
            pipeline=self.pipeline,
            rates=self.rates,
            kernel=self.kernel,
        )

    def server(self) -> Server | None:
        """One replica for the simulator, or None where not even one request fits beside the weights.

        A layer that keeps a window or a state makes blocks cheaper the longer the context is; they are counted at
        their mean price for this context.
        """
        memory = self.budget()
        if not memory.sequences:
            return None
        size = self.profile.block_tokens
        block_bytes = memory.sequence_bytes / -(-self.held_tokens // size)
        profile, blocks = self.profile, int(memory.cache_bytes / block_bytes)
        if profile.prefix == "slot":  # llama.cpp allocates n_parallel x n_ctx at the start, not all there is
            slots = min(memory.sequences, profile.sequences)
            profile = replace(profile, sequences=slots, slot_tokens=self.held_tokens)
            blocks = slots * -(-self.held_tokens // size)
        return Server(
            profile,
            self.cost(),
            blocks,
            swap_block_ms=host_ms(self.device, block_bytes),
            tenant_share=self.tenant_share,
        )
