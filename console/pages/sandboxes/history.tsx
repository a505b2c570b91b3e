import type { ComponentChildren } from 'preact';
import { Panel } from '../../parts/page';
import { Badge, type Tone, When } from '../../parts/values';
import type { Operation, SandboxEvent } from '../../shapes';
import { showDuration, showMoment } from '../../times';
import { colourOf, toWords } from './states';

export function Events({ events }: { readonly events: readonly SandboxEvent[] }) {
  const items = events.map(({ id, type, previousState, currentState, source, message, createdAt }) => ({
    id,
    at: createdAt,
    colour: colourOf(currentState),
    what: (
      <>
        <span>{toWords(type)}</span>
        {previousState !== currentState && <span class="faint small"> {toWords(currentState).toLowerCase()}</span>}
      </>
    ),
    how: `by the ${source}${message === null ? '' : `: ${message}`}`,
  }));
  return <History title="Events" items={items} />;
}

const TONES: Readonly<Record<Operation['status'], Tone>> = {
  PENDING: 'accent',
  RUNNING: 'accent',
  SUCCEEDED: 'good',
  FAILED: 'bad',
  CANCELLED: 'plain',
};

export function Operations({ operations }: { readonly operations: readonly Operation[] }) {
  const items = operations.map(({ id, type, status, cause, requestedAt, endedAt, error, noop }) => ({
    id,
    at: requestedAt,
    what: (
      <>
        <span>{toWords(type)}</span>
        <Badge tone={TONES[status]}>{toWords(status)}</Badge>
      </>
    ),
    how: [
      cause === 'caller' ? 'requested by the caller' : `by the rule ${cause}`,
      ...(endedAt === null ? [] : [`took ${showDuration(Date.parse(endedAt) - Date.parse(requestedAt))}`]),
      ...(noop ? ['already done'] : []),
    ].join(', '),
    error: error === null ? undefined : `${error.code}: ${error.message}`,
  }));
  return <History title="Operations" items={items} />;
}

interface Item {
  readonly id: string;
  readonly at: string;
  readonly colour?: string;
  readonly what: ComponentChildren;
  readonly how: string;
  readonly error?: string | undefined;
}

/** A list of past events, newest first, because users most often want the last one. */
function History({ title, items }: { readonly title: string; readonly items: readonly Item[] }) {
  return (
    <Panel title={title}>
      <ol class="history small">
        {[...items].reverse().map(({ id, at, colour, what, how, error }) => (
          <li key={id} style={colour === undefined ? undefined : { '--bar': colour }}>
            <p class="row">
              {what}
              <span class="grow" />
              <span class="faint small figure">
                <When at={at} as={showMoment} />
              </span>
            </p>
            <p class="quiet small">{how}</p>
            {error !== undefined && <p class="small is-bad">{error}</p>}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
