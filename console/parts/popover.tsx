import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

interface Props {
  readonly label: ComponentChildren;
  /** The accessible name of the button, if the visible label is not clear enough. */
  readonly name?: string;
  readonly look?: string;
  readonly align?: 'end' | undefined;
  readonly up?: boolean;
  readonly children: (close: () => void) => ComponentChildren;
}

/** A button that opens a popover beside itself. Escape, a click elsewhere, or moving the focus away closes the popover. */
export function Popover({ label, name, look = 'button', align, up = false, children }: Props) {
  const [isOpen, setOpen] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();

  useEffect(() => {
    if (!isOpen) return;
    const leave = (event: Event) => {
      if (event.target instanceof Node && !place.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener('pointerdown', leave);
    document.addEventListener('focusin', leave);
    return () => {
      document.removeEventListener('pointerdown', leave);
      document.removeEventListener('focusin', leave);
    };
  }, [isOpen]);

  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes the sheet from any focused element inside
    <div
      class="popover"
      ref={place}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen) return;
        event.stopPropagation();
        close();
      }}
    >
      <button
        ref={button}
        type="button"
        class={look}
        aria-label={name}
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        {label}
      </button>
      {isOpen && (
        <div id={id} class={`popover-sheet${align === 'end' ? ' at-end' : ''}${up ? ' upwards' : ''}`}>
          {children(close)}
        </div>
      )}
    </div>
  );
}
