import type { ComponentChildren } from 'preact';
import { exactUsd, shortUsd } from '../money';
import type { Upstream } from '../shapes';
import { showAgo, showWhole } from '../times';
import { CopyButton } from './button';

interface WhenProps {
  /** The time; null if the event has not happened. */
  readonly at: string | null;
  /** Formats the time. Default: how long ago, or how soon. */
  readonly as?: (at: string) => string;
  /** The text if the event has not happened. */
  readonly none?: string;
}

/** A time, formatted by `as`. Its tooltip has the exact time. */
export function When({ at, as = showAgo, none = '–' }: WhenProps) {
  if (at === null) return <>{none}</>;
  return (
    <time dateTime={at} title={showWhole(at)}>
      {as(at)}
    </time>
  );
}

/** An amount in short form. Its tooltip has the exact amount. null means unknown and is shown as a dash, because it is not zero. */
export function Amount({ usd }: { readonly usd: string | null }) {
  return usd === null ? <>–</> : <span title={exactUsd(usd)}>{shortUsd(usd)}</span>;
}

/** The mark for a value that does not apply. */
export const NONE = <span class="faint">–</span>;

/** The texts that there are, one in each line, or a dash. */
export function Lines({ of }: { readonly of: readonly (string | number | null)[] }) {
  const lines = of.filter((each) => each !== null);
  if (lines.length === 0) return NONE;
  return (
    <>
      {lines.map((each) => (
        <span key={each} class="line">
          {each}
        </span>
      ))}
    </>
  );
}

/** A list of names, or a dash. */
export function Names({ of }: { readonly of: readonly string[] }) {
  return of.length === 0 ? NONE : <span>{of.join(', ')}</span>;
}

export type Tone = 'good' | 'warn' | 'bad' | 'accent' | 'plain';

/** A state in one word. The color repeats the word's meaning and adds nothing. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) {
  return (
    <span class="badge">
      <span class="dot" style={tone === 'plain' ? undefined : { background: `var(--${tone})` }} aria-hidden="true" />
      {children}
    </span>
  );
}

const UPSTREAM_STATES: Readonly<Record<Upstream['state'], { readonly tone: Tone; readonly text: string }>> = {
  available: { tone: 'good', text: 'Available' },
  resting: { tone: 'warn', text: 'Rate limited by the vendor' },
  probing: { tone: 'warn', text: 'Probing' },
  ejected: { tone: 'bad', text: 'Ejected after failures' },
  'taken-out': { tone: 'bad', text: 'Disabled by an operator' },
  disabled: { tone: 'plain', text: 'Disabled by the configuration' },
};

export function UpstreamState({ state }: Pick<Upstream, 'state'>) {
  const { tone, text } = UPSTREAM_STATES[state];
  return <Badge tone={tone}>{text}</Badge>;
}

interface NamedProps {
  readonly name: ComponentChildren;
  readonly href?: string | undefined;
  /** The tooltip of the link. */
  readonly title?: string;
  /** The content below the name, such as an id. */
  readonly sub: ComponentChildren;
}

/** The name of a row, perhaps as a link, with a line below it. */
export function Named({ name, href, title, sub }: NamedProps) {
  return (
    <>
      {href === undefined ? (
        <span class="cut key-name">{name}</span>
      ) : (
        <a class="plain-link cut key-name" href={href} title={title}>
          {name}
        </a>
      )}
      <span class="sub faint small mono cut">{sub}</span>
    </>
  );
}

/** A name and its value, inside a `dl`. */
export function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A text such as an id, with a button that copies it. */
export function Copied({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <span class="copied">
      <code class="cut">{text}</code>
      <CopyButton text={text} label={label} />
    </span>
  );
}
