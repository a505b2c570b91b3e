import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Icon } from './icon';

interface Props {
  readonly title: string;
  /** Called for Escape, the cross, or a click outside. */
  readonly onClose: () => void;
  /** `sheet` is a sheet at the side for one of many items; the default is a box in the middle for one decision. */
  readonly kind?: 'sheet';
  /** A firm dialog cannot be closed by accident: it has no cross and ignores Escape. */
  readonly isFirm?: boolean;
  readonly children: ComponentChildren;
}

/** The browser's own modal dialog, which keeps the focus inside and returns it afterwards. */
export function Dialog({ title, onClose, kind, isFirm = false, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const isLeft = useRef(false);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // The focus goes to the first field or button. The browser would choose the cross.
    element?.querySelector<HTMLElement>('input, .primary')?.focus();
    return () => {
      isLeft.current = true;
      element?.close();
    };
  }, []);
  /** Handles a second request to close, such as a phone's back gesture. The browser then closes the dialog whatever `cancel` does. */
  const onClosed = () => {
    if (isLeft.current) return;
    if (isFirm) dialog.current?.showModal();
    else onClose();
  };

  return (
    <dialog
      ref={dialog}
      class={kind ?? 'box'}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        if (!isFirm) onClose();
      }}
      onClose={onClosed}
      onKeyDown={(event) => {
        if (event.key === 'Escape' && isFirm) event.preventDefault();
      }}
      onClick={(event) => {
        if (event.target === dialog.current && !isFirm) onClose();
      }}
    >
      <div class="dialog-inside">
        <header class="dialog-head">
          <h2 id={titleId}>{title}</h2>
          {!isFirm && (
            <button type="button" class="button icon-button" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          )}
        </header>
        <div class="dialog-body">{children}</div>
      </div>
    </dialog>
  );
}
