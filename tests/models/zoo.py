# SPDX-License-Identifier: Apache-2.0
"""The models that the tests train, their random data, and how each is called.

A model has a task, which says what its data looks like: `seq2seq` (input_ids attention_mask labels, -100 = ignored),
`classify` (one class a row) or `regress` (float rows). All arrays are stacked along dimension 0, step after step.
"""
import torch
from transformers import (BertConfig, BertForSequenceClassification, DebertaConfig, DebertaForSequenceClassification,
                          DebertaV2Config, DebertaV2ForSequenceClassification, LlamaConfig,
                          LlamaForSequenceClassification, ModernBertConfig, ModernBertForSequenceClassification, T5Config,
                          T5ForConditionalGeneration)

STEPS, BATCH, SRC, TGT = 10, 8, 12, 8


def t5(dropout=0.0, **sizes):
    base = dict(vocab_size=61, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3)
    return T5ForConditionalGeneration(T5Config(**{**base, **sizes}, decoder_start_token_id=0, pad_token_id=0,
                                               feed_forward_proj="relu", dropout_rate=dropout))


def deberta(dropout=0.0):
    c = DebertaV2Config(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                        max_position_embeddings=64, type_vocab_size=0, relative_attention=True, position_buckets=8,
                        max_relative_positions=-1, norm_rel_ebd="layer_norm", share_att_key=True,
                        pos_att_type=["p2c", "c2p"], position_biased_input=False, initializer_range=0.1,
                        pooler_hidden_size=24, pooler_dropout=0.0, conv_kernel_size=3, conv_act="gelu",
                        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, num_labels=3)
    return DebertaV2ForSequenceClassification(c)


def deberta1(dropout=0.0):
    """The first version: one product for q, k and v, biases of their own, positions that are not normalised."""
    c = DebertaConfig(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                      max_position_embeddings=16, type_vocab_size=0, relative_attention=True, max_relative_positions=-1,
                      pos_att_type=["p2c", "c2p"], position_biased_input=False, initializer_range=0.1,
                      pooler_hidden_size=24, pooler_dropout=0.0, hidden_dropout_prob=dropout,
                      attention_probs_dropout_prob=dropout, num_labels=3)
    return DebertaForSequenceClassification(c)


def modernbert(dropout=0.0):
    """Norms without biases, rotary positions, a sliding window: padded rows see nothing at all."""
    c = ModernBertConfig(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                         max_position_embeddings=16, local_attention=4, initializer_range=0.1, pad_token_id=0,
                         attention_dropout=dropout, mlp_dropout=dropout, embedding_dropout=dropout, num_labels=3)
    return ModernBertForSequenceClassification(c)


def llama(dropout=0.0):
    """A decoder that classifies by its last token: causal, two heads of queries to one of keys, rotary positions, gated SiLU."""
    c = LlamaConfig(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                    intermediate_size=40, max_position_embeddings=16, initializer_range=0.1, pad_token_id=0,
                    attention_dropout=dropout, num_labels=3)
    return LlamaForSequenceClassification(c)


def bert(dropout=0.0):
    c = BertConfig(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                   max_position_embeddings=16, initializer_range=0.1, hidden_dropout_prob=dropout,
                   attention_probs_dropout_prob=dropout, num_labels=3)
    return BertForSequenceClassification(c)


class Mlp(torch.nn.Module):
    """Regression of two values from six, with a residual block and activations that the transformers do not have."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 16)
        self.norm = torch.nn.LayerNorm(16, eps=1e-6)
        self.gate = torch.nn.Linear(16, 16, bias=False)
        self.last = torch.nn.Linear(16, 2)

    def forward(self, x):
        h = torch.tanh(self.first(x))
        return self.last(h + torch.sigmoid(self.gate(h)) * torch.nn.functional.silu(self.norm(h)))


def moved(model):
    """Norms and biases off their constant start, so that no two parameters are equal by accident."""
    g = torch.Generator().manual_seed(5)
    for name, p in sorted(model.named_parameters()):
        if p.dim() == 1:
            p.data += 0.1 * torch.randn(p.shape, generator=g)
    return model


# name: (task, constructor); "-init" keeps the constant norms and biases that exporters merge or drop.
MODELS = {
    "tiny-t5": ("seq2seq", lambda dropout=0.0: moved(t5(dropout))),
    "tiny-deberta": ("classify", lambda dropout=0.0: moved(deberta(dropout))),
    "tiny-deberta1": ("classify", lambda dropout=0.0: moved(deberta1(dropout))),
    "tiny-modernbert": ("classify", lambda dropout=0.0: moved(modernbert(dropout))),
    "tiny-llama": ("classify", lambda dropout=0.0: moved(llama(dropout))),
    "tiny-bert-init": ("classify", bert),
    "tiny-mlp": ("regress", lambda dropout=0.0: Mlp()),
}


def build(name, dropout=0.0):
    torch.manual_seed(11)
    model = MODELS[name][1](dropout=dropout)
    if hasattr(model, "config"):
        model.config.use_cache = False
    return model


def data(name):
    """Padded sources and, for seq2seq, padded targets: every micro-batch counts another number of tokens."""
    task, n, vocab = MODELS[name][0], STEPS * BATCH, 61
    g = torch.Generator().manual_seed(3)
    if task == "regress":
        x = torch.randn(n, 6, generator=g)
        return dict(x=x, labels=torch.stack([x[:, 0] * x[:, 1], x[:, 2:].sum(1).sin()], 1))
    ids = torch.randint(2, vocab, (n, SRC), generator=g)
    mask = (torch.arange(SRC) < torch.randint(SRC // 3, SRC + 1, (n, 1), generator=g)).long()
    d = dict(input_ids=ids * mask, attention_mask=mask)
    if task == "classify":
        return {**d, "labels": (ids[:, 1] + ids[:, 2]) % 3}
    kept = torch.arange(TGT) < torch.randint(TGT // 4, TGT + 1, (n, 1), generator=g)
    labels = torch.where(kept, (ids[:, :TGT] + 1) % vocab, -100)
    start = torch.zeros(n, 1, dtype=torch.long)
    return {**d, "labels": labels, "decoder_input_ids": torch.cat([start, labels[:, :-1].clamp(min=0)], 1)}


def inputs(task):
    """Names of the arguments that give logits."""
    return {"seq2seq": ["input_ids", "attention_mask", "decoder_input_ids"], "classify": ["input_ids", "attention_mask"],
            "regress": ["x"]}[task]


class Logits(torch.nn.Module):
    def __init__(self, m, task):
        super().__init__()
        self.m, self.names = m, inputs(task)

    def forward(self, *args):
        if self.names == ["x"]:
            return self.m(*args)
        return self.m(**dict(zip(self.names, args))).logits


class Loss(torch.nn.Module):
    """Mean loss and logits, as the model itself computes them."""

    def __init__(self, m, task):
        super().__init__()
        self.m, self.task = m, task

    def forward(self, *args):
        if self.task == "regress":
            y = self.m(args[0])
            return ((y - args[1]) ** 2).mean(), y
        r = self.m(input_ids=args[0], attention_mask=args[1], labels=args[2])
        return r.loss, r.logits


def reverse_data(rows, seed, longest=8, vocab=32):
    """Sequences of 4 to 8 random tokens and the end token 1; the labels are the sequence backwards, then 1."""
    g = torch.Generator().manual_seed(seed)
    length = torch.randint(4, longest + 1, (rows, 1), generator=g)
    pos = torch.arange(longest + 1)
    ids = torch.randint(2, vocab, (rows, longest + 1), generator=g)
    ids = torch.where(pos < length, ids, (pos == length).long())
    back = ids.gather(1, (length - 1 - pos).clamp(min=0))
    labels = torch.where(pos < length, back, torch.where(pos == length, 1, -100))
    return dict(input_ids=ids, attention_mask=(pos <= length).long(), labels=labels)
