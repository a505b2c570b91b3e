import { signal } from '@preact/signals';

/** What screen readers are told of something that happened elsewhere on the page. */
const said = signal('');

export function announce(text: string): void {
  // The same words twice are said twice only when something was between them.
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
