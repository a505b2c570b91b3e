import { signal } from '@preact/signals';

/** The announcement for screen readers about a change elsewhere on the page. */
const said = signal('');

export function announce(text: string): void {
  // Screen readers repeat the same words only if the text changed in between.
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
