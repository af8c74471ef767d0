"""One training run, from the first digit read to the last file written."""

from __future__ import annotations

import math
import random
from functools import lru_cache

from . import dataset, gallery
from .checkpoints import Checkpoints, Position
from .clock import Clock
from .console import Console
from .dataset import Digits
from .errors import Interrupted
from .events import Progress, Reporter
from .network import Network, mean_loss
from .optimizer import AdamW, learning_rate
from .settings import Settings
from .stopping import StopRequest

LOSS_MEMORY = 0.95


class Session:
    def __init__(
        self, settings: Settings, console: Console, reporter: Reporter, stop: StopRequest
    ) -> None:
        self._settings = settings
        self._console = console
        self._reporter = reporter
        self._stop = stop
        self._checkpoints = Checkpoints(
            settings.output_dir, settings.checkpoints_total_limit, console
        )
        self._network = Network.fresh(settings.hidden_units, settings.seed)
        self._optimizer = AdamW(self._network.tensors, settings.weight_decay)
        self._position = Position()
        self._saved_step: int | None = None

    def run(self) -> None:
        self._reporter.status("starting")
        with self._reporter.stage("loading_data", "Loading data"):
            self._load()
        self._resume()
        with self._reporter.stage("training", "Training", self._progress()):
            self._train()
        with self._reporter.stage("saving", "Saving the model"):
            self._save_final()
        self._finish()

    def _load(self) -> None:
        split = dataset.load(self._settings.data_backend_config)
        self._training, self._held_out = split.training, split.held_out
        self._pages = gallery.pages(self._settings.user_prompt_library, split.held_out)
        self._steps_per_epoch = math.ceil(len(split.training) / self._settings.train_batch_size)
        self._console.info(
            f"{len(split.training)} digits to learn from, {len(split.held_out)} held out; "
            f"{self._network.size} weights"
        )

    def _resume(self) -> None:
        wanted = self._settings.resume_from_checkpoint
        if not wanted:
            return
        found = self._checkpoints.restore(wanted, self._network, self._optimizer)
        if found is None:
            self._console.info("no checkpoint to continue from; starting at step 0")
            return
        self._position = found
        self._saved_step = found.step
        self._console.info(f"continuing from step {found.step}")
        self._reporter.notify("Training resumed", f"Continuing from step {found.step}.")

    def _train(self) -> None:
        self._stop.sleep(self._settings.silent_seconds)
        self._leave_if_asked()
        if self._position.step == 0:
            self._evaluate()
            self._validate()
        clock = Clock(self._position.step, self._settings)
        self._tell(clock)
        while self._position.step < self._settings.max_train_steps:
            self._leave_if_asked()
            self._step()
            self._after_step(clock)
        self._console.end_bar()

    def _step(self) -> None:
        self._position.step += 1
        step = self._position.step
        loss, gradients = self._network.gradients(self._batch(step))
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the loss is {loss} at step {step}: try a lower learning_rate"
            )
        rate = learning_rate(self._settings, step)
        self._optimizer.update(self._network.tensors, gradients, rate, step)
        memory = LOSS_MEMORY if step > 1 else 0.0
        self._position.loss = memory * self._position.loss + (1 - memory) * loss

    def _batch(self, step: int) -> Digits:
        """The samples of a step follow from the seed and the step alone."""
        epoch, place = divmod(step - 1, self._steps_per_epoch)
        order = _shuffled(len(self._training), f"order {self._settings.seed} {epoch}")
        size = self._settings.train_batch_size
        return self._training.pick(order[place * size : (place + 1) * size])

    def _after_step(self, clock: Clock) -> None:
        settings, step = self._settings, self._position.step
        last = step == settings.max_train_steps
        if step == settings.fail_at_step:
            raise RuntimeError(f"failing at step {step}, as example_fail_at_step asks")
        if step % settings.eval_steps == 0 or last:
            self._evaluate()
        if last or clock.report_is_due():
            self._tell(clock)
        if step % settings.logging_steps == 0 or last:
            self._log(clock)
        if _due(step, settings.validation_steps) or last:
            self._validate()
        if _due(step, settings.checkpointing_steps):
            self._save_checkpoint()
        self._stop.sleep(settings.step_delay_ms / 1000)

    def _evaluate(self) -> None:
        guesses = [self._network.predict(image) for image in self._held_out.images]
        right = sum(
            guess.index(max(guess)) == label for guess, label in zip(guesses, self._held_out.labels)
        )
        self._position.accuracy = right / len(guesses)
        if self._position.step == 0:
            self._position.loss = mean_loss(guesses, self._held_out.labels)

    def _validate(self) -> None:
        step, total = self._position.step, self._settings.max_train_steps
        folder = self._settings.output_dir / "validation_images"
        folder.mkdir(exist_ok=True)
        pngs = [gallery.draw(page, self._network, f"step {step}/{total}") for page in self._pages]
        for index, png in enumerate(pngs):
            (folder / f"step_{step}_{index}.png").write_bytes(png)
        accuracy = f"{self._position.accuracy:.1%} of the held-out digits read correctly"
        self._console.info(f"validation at step {step}: {accuracy}")
        self._reporter.samples(f"Validation at step {step}", f"{accuracy}.", step, pngs)

    def _leave_if_asked(self) -> None:
        reason = self._stop.reason()
        if reason is None:
            return
        self._console.end_bar()
        step = self._position.step
        self._console.warn(f"asked to stop by {reason}; saving at step {step}")
        if self._saved_step != step:
            self._save_checkpoint()
        raise Interrupted(f"Stopped by {reason} after step {step}; a checkpoint is saved.")

    def _save_checkpoint(self) -> None:
        path = self._checkpoints.save(self._network, self._optimizer, self._position)
        self._saved_step = self._position.step
        self._console.info(f"saved {path.name}")
        self._reporter.checkpoint(path, f"step {self._position.step}", is_final=False)

    def _save_final(self) -> None:
        path = self._checkpoints.save_final(self._network, self._position)
        self._console.info(f"saved {path.name}")
        self._reporter.checkpoint(path, "final model", is_final=True)

    def _finish(self) -> None:
        done = f"{self._settings.run_name}: {self._position.accuracy:.1%} of held-out digits right"
        self._console.info(f"training completed; {done}")
        self._reporter.notify("Training completed", f"{done}.")
        self._reporter.status("completed", self._progress())

    def _tell(self, clock: Clock) -> None:
        self._reporter.status("running", self._progress(clock))
        note = f"loss={self._position.loss:.3f} accuracy={self._position.accuracy:.1%}"
        self._console.bar(self._position.step, self._settings.max_train_steps, note)

    def _log(self, clock: Clock) -> None:
        position, settings = self._position, self._settings
        self._console.info(
            f"step {position.step}/{settings.max_train_steps}  loss {position.loss:.4f}  "
            f"lr {learning_rate(settings, position.step):.2e}  "
            f"accuracy {position.accuracy:.1%}  "
            f"{clock.samples_per_second(position.step):.0f} samples/s"
        )

    def _progress(self, clock: Clock | None = None) -> Progress:
        position, total = self._position, self._settings.max_train_steps
        metrics = {
            "loss": round(position.loss, 5),
            "learning_rate": learning_rate(self._settings, max(1, position.step)),
            "epoch": round(position.step / self._steps_per_epoch, 3),
            "accuracy": round(position.accuracy, 4),
        }
        eta = None
        if clock:
            metrics["samples_per_second"] = round(clock.samples_per_second(position.step), 1)
            eta = clock.eta_seconds(position.step)
        return Progress(position.step, total, eta, metrics)


@lru_cache(maxsize=1)
def _shuffled(count: int, seed: str) -> list[int]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order


def _due(step: int, interval: int) -> bool:
    """An interval of zero means never."""
    return interval > 0 and step % interval == 0
