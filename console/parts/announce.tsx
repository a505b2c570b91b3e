import { signal } from '@preact/signals';

/** The text that screen readers announce after a change on the page. */
const said = signal('');

export function announce(text: string): void {
  // Empties the text first, because screen readers repeat the same words only if the text changed in between.
  said.value = '';
  setTimeout(() => {
    said.value = text;
  }, 50);
}

export function Announcements() {
  return (
    <div class="unseen" role="status" aria-live="polite">
      {said.value}
    </div>
  );
}
