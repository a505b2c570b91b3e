import { useState } from 'preact/hooks';
import { ask, withQuery } from '../../api';
import { Icon } from '../../parts/icon';
import { type Option, Picker } from '../../parts/picker';
import { Popover } from '../../parts/popover';
import { useResource } from '../../resource';
import { changeQuery } from '../../router';
import type { ApiKey, Catalog, List } from '../../shapes';
import { fromLocalInput, showMoment, TIME_ZONE, toLocalInput } from '../../times';
import { FILTERS, type Filter, isNarrowed, PRESETS, type Preset, type Range, writeRange } from './filter';

const STATUSES: readonly Option[] = [
  { value: '200', text: '200', hint: 'answered' },
  { value: '400', text: '400', hint: 'invalid request' },
  { value: '402', text: '402', hint: 'no funds, or limit reached' },
  { value: '404', text: '404', hint: 'not found' },
  { value: '408', text: '408', hint: 'request timeout' },
  { value: '413', text: '413', hint: 'request too large' },
  { value: '429', text: '429', hint: 'too many requests' },
  { value: '500', text: '500', hint: 'internal error' },
  { value: '502', text: '502', hint: 'all upstreams failed' },
  { value: '503', text: '503', hint: 'not ready' },
  { value: '504', text: '504', hint: 'timeout' },
  { value: '529', text: '529', hint: 'the upstream is overloaded' },
];

export function FilterBar({ filter }: { readonly filter: Filter }) {
  const { range, key, model, upstream, status, session, agent } = filter;
  const catalog = useResource<Catalog>('catalog');
  const set = (name: string) => (value: string | undefined) => changeQuery({ [name]: value });
  const fitting = (options: readonly Option[]) => async (words: string) =>
    options.filter(({ text, hint = '' }) => `${text} ${hint}`.toLowerCase().includes(words.trim().toLowerCase()));
  const named = (names: readonly string[] | undefined) => (names ?? []).map((name) => ({ value: name, text: name }));
  return (
    <fieldset class="toolbar">
      <legend class="unseen">Filters</legend>
      <RangePicker range={range} />
      <Picker label="Key" value={useKeyOption(key)} onChange={set('key')} find={findKeys} />
      <Picker
        label="Model"
        value={optionOf(model)}
        onChange={set('model')}
        find={fitting(named(catalog.data?.models.map(({ name }) => name)))}
      />
      <Picker
        label="Upstream"
        value={optionOf(upstream)}
        onChange={set('upstream')}
        find={fitting(named(catalog.data?.upstreams.map(({ name }) => name)))}
      />
      <Picker
        label="Status"
        value={optionOf(status)}
        onChange={set('status')}
        find={async (words) => {
          const found = await fitting(STATUSES)(words);
          const other = words.trim();
          return found.length === 0 && /^[1-5]\d\d$/.test(other) ? [{ value: other, text: other }] : found;
        }}
      />
      <Picker label="Session" value={optionOf(session)} onChange={set('session')} find={asWritten} />
      <Picker label="Agent" value={optionOf(agent)} onChange={set('agent')} find={asWritten} />
      {isNarrowed(filter) && (
        <button
          type="button"
          class="button slight"
          onClick={() => changeQuery(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
        >
          Clear
        </button>
      )}
    </fieldset>
  );
}

function optionOf(value: string | undefined): Option | undefined {
  return value === undefined ? undefined : { value, text: value };
}

/** Offers the typed text itself, because clients choose these ids and the gateway has no list of them. */
async function asWritten(words: string): Promise<readonly Option[]> {
  const id = words.trim();
  return id === '' ? [] : [{ value: id, text: id }];
}

async function findKeys(words: string): Promise<readonly Option[]> {
  const { items } = await ask<List<ApiKey>>(withQuery('keys', { search: words.trim(), limit: 50 }));
  return items.map(({ id, name, suffix, status }) => ({
    value: id,
    text: name,
    hint: `…${suffix}${status === 'revoked' ? ' · revoked' : ''}`,
  }));
}

/** Reads the name of a key, because the address of the page has only its id. */
function useKeyOption(id: string | undefined): Option | undefined {
  const key = useResource<ApiKey>(id === undefined ? undefined : `keys/${encodeURIComponent(id)}`);
  if (id === undefined) return undefined;
  return { value: id, text: key.data?.id === id ? key.data.name : key.failure === undefined ? '…' : id };
}

function RangePicker({ range }: { readonly range: Range }) {
  return (
    <Popover
      look="button filter is-set"
      name={`Range: ${textOf(range)}`}
      label={
        <>
          <span>{textOf(range)}</span>
          <Icon name="chevron" />
        </>
      }
    >
      {(close) => (
        <div class="range">
          <ul class="menu">
            {(Object.keys(PRESETS) as Preset[]).map((preset) => (
              <li key={preset}>
                <button
                  type="button"
                  aria-current={range.preset === preset ? 'true' : undefined}
                  onClick={() => {
                    changeQuery(writeRange({ preset }));
                    close();
                  }}
                >
                  {PRESETS[preset].text}
                  {range.preset === preset && <Icon name="check" />}
                </button>
              </li>
            ))}
          </ul>
          <OwnRange range={range} onDone={close} />
        </div>
      )}
    </Popover>
  );
}

function OwnRange({ range, onDone }: { readonly range: Range; readonly onDone: () => void }) {
  const own = range.preset === undefined ? range : { from: undefined, to: undefined };
  const [from, setFrom] = useState(own.from === undefined ? '' : toLocalInput(own.from));
  const [to, setTo] = useState(own.to === undefined ? '' : toLocalInput(own.to));
  const apply = (event: SubmitEvent) => {
    event.preventDefault();
    changeQuery(writeRange({ preset: undefined, from: fromLocalInput(from), to: fromLocalInput(to) }));
    onDone();
  };
  return (
    <form class="own-range" onSubmit={apply}>
      <label>
        <span class="quiet small">From</span>
        <input type="datetime-local" value={from} max={to} onInput={(event) => setFrom(event.currentTarget.value)} />
      </label>
      <label>
        <span class="quiet small">To</span>
        <input type="datetime-local" value={to} min={from} onInput={(event) => setTo(event.currentTarget.value)} />
      </label>
      <p class="faint small">{TIME_ZONE}</p>
      <button type="submit" class="button" disabled={from === '' && to === ''}>
        Apply
      </button>
    </form>
  );
}

function textOf(range: Range): string {
  if (range.preset !== undefined) return PRESETS[range.preset].text;
  const show = (time: string) => (Number.isNaN(Date.parse(time)) ? time : showMoment(time).replace(/:00$/, ''));
  if (range.from === undefined) return `Until ${show(range.to ?? '')}`;
  return range.to === undefined ? `Since ${show(range.from)}` : `${show(range.from)} – ${show(range.to)}`;
}
