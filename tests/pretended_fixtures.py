"""Fixtures of a study whose training is pretended; a test file names it as a plugin."""

from pathlib import Path

import pytest
from pretended_study import PLAN, Pretender

from fallow.agents import checkpoints, training
from fallow.study import runner
from fallow.study import trunks as trunks_module
from fallow.study.engines import run_study


@pytest.fixture
def pretender(monkeypatch) -> Pretender:
    pretender = Pretender()
    for module in (runner, trunks_module):
        monkeypatch.setattr(module, "Fleet", pretender.make)
    monkeypatch.setattr(training, "resume", pretender.resume)
    monkeypatch.setattr(training, "train_until", pretender.train_until)
    monkeypatch.setattr(runner, "_begin", lambda *_: None)
    monkeypatch.setattr(
        checkpoints.CheckpointPath, "fingerprint", pretender.fingerprint
    )
    return pretender


@pytest.fixture
def done(pretender, tmp_path) -> Path:
    """A finished study of three fleets."""
    run_study(PLAN, tmp_path / "done", pretender.watch)
    pretender.trained.clear()
    pretender.messages.clear()
    return tmp_path / "done"
