import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { announce } from './announce';
import { Icon } from './icon';

interface ButtonProps {
  readonly onClick: () => void;
  /** Further CSS classes, such as `primary` or `slight danger`. */
  readonly look?: string | undefined;
  /** The object that the button acts on, for screen readers. */
  readonly of?: string;
  readonly isDisabled?: boolean;
  readonly children: ComponentChildren;
}

export function Button({ onClick, look, of, isDisabled = false, children }: ButtonProps) {
  return (
    <button type="button" class={look ? `button ${look}` : 'button'} disabled={isDisabled} onClick={onClick}>
      {children}
      {of !== undefined && <span class="unseen"> {of}</span>}
    </button>
  );
}

interface CopyProps {
  readonly text: string;
  /** The button's accessible name, such as `Copy the key`. */
  readonly label: string;
  /** The words that the button shows; without them it shows only an icon. */
  readonly words?: string;
  readonly kind?: 'primary';
}

export function CopyButton({ text, label, words, kind }: CopyProps) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [isCopied]);

  const copy = async (event: MouseEvent) => {
    event.stopPropagation();
    if (!(await toClipboard(text))) return announce('Copying failed. Select the text instead.');
    setCopied(true);
    announce('Copied.');
  };
  const look = words === undefined ? 'button icon-button' : kind === 'primary' ? 'button primary' : 'button';
  return (
    <button
      type="button"
      class={look}
      aria-label={label}
      title={words === undefined ? label : undefined}
      onClick={copy}
    >
      <Icon name={isCopied ? 'check' : 'copy'} />
      {words !== undefined && <span>{isCopied ? 'Copied' : words}</span>}
    </button>
  );
}

async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** Copies a text by selecting it in a hidden field, because the clipboard API exists only on https and localhost. */
function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'unseen';
  // Adds the field to the open dialog, because nothing outside a modal dialog can get the focus.
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  field.select();
  const isDone = document.execCommand('copy');
  field.remove();
  return isDone;
}
