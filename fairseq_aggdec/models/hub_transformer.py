"""The Transformer of OPUS-MT and Pegasus: fairseq's, with a bias on its logits."""

import torch
from fairseq.data import Dictionary
from fairseq.models import (
    BaseFairseqModel,
    FairseqDecoder,
    register_model,
    register_model_architecture,
)
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.tasks import FairseqTask
from torch import nn

from fairseq_aggdec.models.architectures import Options


@register_model("hub_transformer")
class HubTransformerModel(TransformerModel):
    """Its decoder is of fairseq's class, whose output projection has no bias elsewhere."""

    @classmethod
    def build_model(cls, args: Options, task: FairseqTask) -> BaseFairseqModel:
        """As fairseq's; where both sides have one vocabulary, encoder and output projection share its matrix."""
        model = super().build_model(args, task)
        if getattr(args, "share_source_output_embed", False):
            model.decoder.output_projection.weight = model.encoder.embed_tokens.weight
        return model

    @classmethod
    def build_decoder(
        cls, args: Options, tgt_dict: Dictionary, embed_tokens: nn.Embedding
    ) -> FairseqDecoder:
        """As fairseq's, with the bias."""
        decoder = super().build_decoder(args, tgt_dict, embed_tokens)
        decoder.output_projection.bias = nn.Parameter(torch.zeros(len(tgt_dict)))
        return decoder


register_model_architecture("hub_transformer", "hub_transformer")(base_architecture)
