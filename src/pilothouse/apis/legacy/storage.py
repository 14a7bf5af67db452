"""Volume attachments through storage.k8s.io/v1beta1: their status is written with them, and any attacher will do."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.apis.legacy.older import Older
from pilothouse.apis.storage.volume_attachment import VolumeAttachmentStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery.objects import Object


class OpenAttachments(VolumeAttachmentStrategy):
    """Attachments that are written whole."""

    judges_attacher: ClassVar[bool] = False

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        """Whoever creates it may say whether it is attached."""

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        """And so may whoever updates it."""


OLDER: dict[tuple[str, str], Older] = {
    ("v1alpha1", "volumeattachments"): Older(unowned=()),
    ("v1beta1", "volumeattachments"): Older(strategy=OpenAttachments, unowned=()),
    ("v1beta1", "csinodes"): Older(unowned=()),
}
