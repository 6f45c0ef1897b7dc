/* A step of fairseq's beam search for all sentences of a batch (used by decoding/beam/plain.py; rules in search.py).
   Compiled with kernels.c, and called in the same way. */

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t sentences, size, eos;        /* B; N */
    int64_t length, entries;             /* T, tokens of a hypothesis before the step; E, entries behind each */
    int64_t slot;                        /* the first slot of a sentence's new hypotheses */
    int64_t keeps_order;                 /* whether equal sums keep their order, and are not left open */
    /* before: M hypotheses, sentence by sentence */
    const int64_t *counts;               /* B, the number of each sentence's hypotheses, at most N */
    const int64_t *texts, *paths;        /* M x T, tokens, and their slots */
    const float *sums;                   /* M x T, cumulative log-probabilities */
    const float *values;                 /* M x E, the best log-probabilities behind each, in descending order */
    const int64_t *names;                /* M x E, the tokens of `values` */
    /* the candidates of each sentence, in descending order, up to the N-th that is not EOS, so at most 2N */
    int64_t *found;                      /* B, the number of candidates; -1 where equal sums leave them open */
    float *best;                         /* B x 2N, cumulative */
    int64_t *parents, *tokens;           /* B x 2N; parents are counted from a sentence's first hypothesis */
    /* after */
    int64_t *new_counts;                 /* B */
    int64_t *new_texts, *new_paths;      /* at most B N x (T + 1) */
    float *new_sums;
    int64_t *ends;                       /* at most B N x 2, hypotheses finished by EOS: sentence and number */
    float *scores;                       /* at most B N, cumulative */
} Step;

/* Finds the candidates. Returns the number of sentences with open ones. */
int64_t aggdec_candidates(const Step *s) {
    int64_t first = 0, open = 0;
    for (int64_t sentence = 0; sentence < s->sentences; first += s->counts[sentence++]) {
        const int64_t count = s->counts[sentence], from = 2 * s->size * sentence;
        int64_t taken[count + 1], found = 0, words = s->size; /* taken: entries of each row */
        float last = NAN;
        memset(taken, 0, sizeof taken);
        for (;;) {
            float best = -INFINITY;
            int64_t who = -1;
            for (int64_t own = 0; own < count; own++) {
                const int64_t row = first + own;
                if (taken[own] == s->entries) continue;
                const float sum = s->sums[(row + 1) * s->length - 1] + s->values[row * s->entries + taken[own]];
                if (sum > best) best = sum, who = own;
            }
            if (who < 0) break;
            if (best == last && !s->keeps_order) {
                found = -1, open++;
                break;
            }
            if (words == 0) break; /* one more entry was compared, to detect a tie */
            last = best;
            const int64_t token = s->names[(first + who) * s->entries + taken[who]++];
            s->best[from + found] = best, s->parents[from + found] = who, s->tokens[from + found++] = token;
            words -= token != s->eos;
        }
        s->found[sentence] = found;
    }
    return open;
}

/* Extends the hypotheses by the candidates. Returns the number of ends. */
int64_t aggdec_take(const Step *s) {
    const int64_t length = s->length;
    int64_t first = 0, ends = 0, row = 0;
    for (int64_t sentence = 0; sentence < s->sentences; first += s->counts[sentence++]) {
        const int64_t start = row;
        for (int64_t place = 0; place < s->found[sentence]; place++) {
            const int64_t from = 2 * s->size * sentence + place, parent = first + s->parents[from];
            if (s->tokens[from] == s->eos) {
                if (place >= s->size) continue; /* fairseq drops it */
                s->ends[2 * ends] = sentence, s->ends[2 * ends + 1] = parent, s->scores[ends++] = s->best[from];
            } else if (row - start < s->size) {
                int64_t *text = s->new_texts + row * (length + 1), *path = s->new_paths + row * (length + 1);
                float *sum = s->new_sums + row * (length + 1);
                memcpy(text, s->texts + parent * length, length * sizeof *text);
                memcpy(path, s->paths + parent * length, length * sizeof *path);
                memcpy(sum, s->sums + parent * length, length * sizeof *sum);
                text[length] = s->tokens[from], path[length] = s->slot + row - start, sum[length] = s->best[from];
                row++;
            }
        }
        s->new_counts[sentence] = row - start;
    }
    return ends;
}
