import { CopyButton } from './button';

/** Lines for users to copy, with a button that copies them. */
export function Snippet({ name, text }: { readonly name: string; readonly text: string | undefined }) {
  return (
    <div class="snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by the keyboard */}
      <section tabIndex={0} aria-label={`Example: ${name}`}>
        <pre>
          <code>{text ?? '\n\n\n\n\n\n\n\n'}</code>
        </pre>
      </section>
      {text !== undefined && <CopyButton text={text} label="Copy the example" />}
    </div>
  );
}
