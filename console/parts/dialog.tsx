import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { Icon } from './icon';

interface Props {
  readonly title: string;
  /** Escape, the cross, or a click beside it. */
  readonly onClose: () => void;
  /** A sheet at the side for looking at one of many; else a box in the middle for one decision. */
  readonly kind?: 'sheet';
  /** What must not be closed by accident has no cross and is not left by Escape. */
  readonly isFirm?: boolean;
  readonly children: ComponentChildren;
}

/** The browser's own modal dialog: it keeps the focus inside and gives it back afterwards. */
export function Dialog({ title, onClose, kind, isFirm = false, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const isLeft = useRef(false);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // What is to be filled in or done first; else the browser has chosen the cross.
    element?.querySelector<HTMLElement>('input, .primary')?.focus();
    return () => {
      isLeft.current = true;
      element?.close();
    };
  }, []);
  /** A second request to close, a phone's back gesture say, closes it whatever `cancel` says. */
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
