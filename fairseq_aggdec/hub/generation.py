"""How transformers' `generate` searches with a model, as fairseq's options."""

from fairseq_aggdec.errors import AggdecError, option_name
from fairseq_aggdec.generation.options import SearchOptions
from fairseq_aggdec.hub.files import Fields

_LEAST = {
    "length_penalty": -float("inf"),
    **dict.fromkeys(("max_length", "max_new_tokens", "num_beams"), 1),
    **dict.fromkeys(("min_length", "min_new_tokens", "no_repeat_ngram_size"), 0),
}
"""the least value of each number; all but the first are whole"""
_READ = _LEAST.keys() | set(
    "bad_words_ids decoder_start_token_id early_stopping force_bos_token_to_be_generated forced_bos_token_id "
    "forced_eos_token_id".split()
)
_WITHOUT_EFFECT = frozenset(
    "cache_config cache_implementation compile_config disable_compile epsilon_cutoff eta_cutoff is_assistant "
    "low_memory max_cache_len min_p num_return_sequences output_attentions output_hidden_states output_logits "
    "output_scores prefill_chunk_size remove_invalid_values renormalize_logits return_dict_in_generate temperature "
    "top_h top_k top_p typical_p use_cache".split()
)
"""on a greedy search, and on a beam's"""
_NOT_SUPPORTED = {
    **dict.fromkeys(
        "encoder_repetition_penalty guidance_scale num_beam_groups repetition_penalty".split(),
        1,
    ),
    **dict.fromkeys(
        "begin_suppress_tokens constraints diversity_penalty do_sample dola_layers encoder_no_repeat_ngram_size "
        "exponential_decay_length_penalty force_words_ids forced_decoder_ids max_time penalty_alpha sequence_bias "
        "stop_strings suppress_tokens token_healing use_mtp watermarking_config".split(),
        0,
    ),
}
"""the value that changes nothing; an empty one does not either"""
GENERATION = _READ | _WITHOUT_EFFECT | _NOT_SUPPORTED.keys()
"""fields of generation_config.json, which older files have in config.json"""
_ASSISTED = (
    "_",
    "transformers_version",
    "assistant_",
    "num_assistant",
    "prompt_lookup_",
    "max_matching_ngram",
)
"""beginnings of other fields that change no output; most are of the drafts of transformers"""


def flags(options: Fields) -> list[str]:
    """The words of a command line for options of a search that differ from fairseq's defaults."""
    words = []
    for name, value in options.items():
        if value != getattr(SearchOptions, name, 0):
            words += (
                [option_name(name)]
                if value is True
                else [option_name(name), f"{value:g}"]
            )
    return words


def search_options(fields: Fields, config: Fields) -> Fields:
    """fairseq's options of a search. Raises `AggdecError` for a field that is not known, or not supported.

    Args:
        fields: those of generation_config.json.
        config: those of config.json, which holds the indices of special tokens, too.
    """
    special = {
        name: index
        for name, index in config.items()
        if name.endswith("_token_id") and name not in GENERATION
    }
    # each field must be one that is read, or that changes nothing
    for name, value in fields.items():
        if name in special:
            if value not in (special[name], [special[name]]):
                raise AggdecError(
                    f"generation_config.json: {name}: {value!r} is another than in config.json"
                )
            continue
        if value and value != _NOT_SUPPORTED.get(name, value):
            raise AggdecError(
                f"generation_config.json: {name}: {value!r} is not supported; delete it to go without"
            )
        if name not in GENERATION and not name.startswith(_ASSISTED):
            raise AggdecError(
                f"generation_config.json: {name}: is not known; delete it if it changes nothing"
            )
        kinds = (int, float) if name == "length_penalty" else (int,)
        if name in _LEAST and (type(value) not in kinds or value < _LEAST[name]):
            raise AggdecError(
                f"generation_config.json: {name}: {value!r} is no such number; download the file again"
            )
    pad = special.get("pad_token_id")
    eos = special.get("eos_token_id")
    if fields.get("bad_words_ids", [[pad]]) != [[pad]]:
        raise AggdecError(
            "generation_config.json: bad_words_ids: has more than <pad>, which is not supported"
        )
    if fields.get("forced_eos_token_id", eos) != eos:
        raise AggdecError(
            f"generation_config.json: forced_eos_token_id: must be {eos}, the end of a sentence, or null"
        )
    # transformers' `max_length` and `min_length` count the first input of the decoder; without them it writes 20 tokens
    longest = (
        fields["max_new_tokens"] + 1
        if "max_new_tokens" in fields
        else fields.get("max_length", 21)
    )
    # fairseq's names
    options = {
        "beam": fields.get("num_beams", 1),
        "lenpen": fields.get("length_penalty", 1.0),
        "max_len_a": 0,
        "max_len_b": longest - (2 if "forced_eos_token_id" in fields else 1),
        "min_len": max(
            fields.get("min_length", 0) - 1, fields.get("min_new_tokens", 0), 0
        ),
    }
    if size := fields.get("no_repeat_ngram_size"):
        options |= {"no_repeat_ngram_size": size, "block_ngrams": True}
    return options
