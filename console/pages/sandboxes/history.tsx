import { Badge, type Tone } from '../../parts/badge';
import type { Operation, SandboxEvent } from '../../shapes';
import { showDuration, showMoment, showWhole } from '../../times';
import { toWords } from './states';

/** The events, newest first, because the last event is the one most often wanted. */
export function Events({ events }: { readonly events: readonly SandboxEvent[] }) {
  return (
    <section class="panel" aria-labelledby="events-title">
      <header class="panel-head">
        <h2 id="events-title">Events</h2>
      </header>
      <ol class="history">
        {[...events].reverse().map(({ id, type, previousState, currentState, source, message, createdAt }) => (
          <li key={id} class={`state-${currentState.toLowerCase()}`}>
            <p>
              <span>{toWords(type)}</span>
              {previousState !== currentState && (
                <span class="faint small"> {toWords(currentState).toLowerCase()}</span>
              )}
              <span class="grow" />
              <time class="faint small figure" dateTime={createdAt} title={showWhole(createdAt)}>
                {showMoment(createdAt)}
              </time>
            </p>
            <p class="quiet small">
              by the {source}
              {message !== null && `: ${message}`}
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}

const TONES: Readonly<Record<Operation['status'], Tone>> = {
  PENDING: 'accent',
  RUNNING: 'accent',
  SUCCEEDED: 'good',
  FAILED: 'bad',
  CANCELLED: 'plain',
};

export function Operations({ operations }: { readonly operations: readonly Operation[] }) {
  return (
    <section class="panel" aria-labelledby="operations-title">
      <header class="panel-head">
        <h2 id="operations-title">Operations</h2>
      </header>
      <ol class="history">
        {[...operations].reverse().map(({ id, type, status, cause, requestedAt, endedAt, error, noop }) => (
          <li key={id}>
            <p>
              <span>{toWords(type)}</span>
              <Badge tone={TONES[status]}>{toWords(status)}</Badge>
              <span class="grow" />
              <time class="faint small figure" dateTime={requestedAt} title={showWhole(requestedAt)}>
                {showMoment(requestedAt)}
              </time>
            </p>
            <p class="quiet small">
              {cause === 'caller' ? 'requested by the caller' : `by the rule ${cause}`}
              {endedAt !== null && `, took ${showDuration(Date.parse(endedAt) - Date.parse(requestedAt))}`}
              {noop && ', already done'}
            </p>
            {error !== null && (
              <p class="small is-bad">
                {error.code}: {error.message}
              </p>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
