"""A look at the weights costs a GPU no wait at the start of a batch."""

from typing import Any

import pytest
from torch.overrides import TorchFunctionMode

from fairseq_aggdec.engine import weights_snapshot
from fairseq_aggdec.engine.engines import Engines
from tests.support.small_generators import BATCHES, small_model


class Reads(TorchFunctionMode):
    """Counts tensors that are copied to the host."""

    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += getattr(func, "__name__", "") == "cpu"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("is_gpu", [False, True])
def test_a_gpu_is_waited_for_at_the_end_of_a_batch(is_gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_snapshot, "is_asynchronous", lambda device: is_gpu)
    model, engines = small_model(), Engines()
    engines.encode(model, BATCHES[0]["net_input"])
    first = engines.decoder(model.decoder)
    with Reads() as reads, engines.batch():
        assert engines.decoder(model.decoder) is first
        assert reads.count == (0 if is_gpu else 2)
        assert engines.were_current()
        assert reads.count == 2
    model.decoder.layers[-1].final_layer_norm.bias.data.add_(1)
    with engines.batch():
        assert (engines.decoder(model.decoder) is first) == is_gpu
        assert engines.were_current() == (not is_gpu)
        assert engines.decoder(model.decoder) is not first
