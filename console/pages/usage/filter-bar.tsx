import { useState } from 'preact/hooks';
import { ask, withQuery } from '../../api';
import { Button } from '../../parts/button';
import { Icon } from '../../parts/icon';
import { type Option, Picker } from '../../parts/picker';
import { Popover } from '../../parts/popover';
import { useResource } from '../../resource';
import { changeQuery } from '../../router';
import type { ApiKey, Catalog, List, Totals } from '../../shapes';
import { fromLocalInput, showMoment, TIME_ZONE, toLocalInput } from '../../times';

const STATUSES: readonly Option[] = Object.entries({
  200: 'answered',
  400: 'invalid request',
  402: 'no funds, or limit reached',
  404: 'not found',
  408: 'request timeout',
  413: 'request too large',
  429: 'too many requests',
  500: 'internal error',
  502: 'all upstreams failed',
  503: 'not ready',
  504: 'timeout',
  529: 'the upstream is overloaded',
}).map(([value, hint]) => ({ value, text: value, hint }));

interface Props {
  readonly filter: Filter;
  /** The API query of the filter. */
  readonly wanted: Query;
}

export function FilterBar({ filter, wanted }: Props) {
  const { range, key, model, upstream, status, session, agent, endUser, tags } = filter;
  const catalog = useResource<Catalog>('catalog');
  const set = (name: string) => (value: string | undefined) => changeQuery({ [name]: value });
  const named = (names: readonly string[] | undefined) => (names ?? []).map((name) => ({ value: name, text: name }));
  return (
    <fieldset class="toolbar row">
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
      <OwnerPicker label="Team" name="team" filter={filter} wanted={wanted} />
      <OwnerPicker label="Member" name="member" filter={filter} wanted={wanted} />
      <Picker label="End user" value={optionOf(endUser)} onChange={set('endUser')} find={asWritten} />
      <Picker label="Tags" hint="customer=4711" value={optionOf(tags)} onChange={set('tags')} find={asTags} />
      {isNarrowed(filter) && (
        <Button look="slight" onClick={() => changeQuery(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}>
          Clear
        </Button>
      )}
    </fieldset>
  );
}

function fitting(options: readonly Option[]) {
  return async (words: string) =>
    options.filter(({ text, hint = '' }) => `${text} ${hint}`.toLowerCase().includes(words.trim().toLowerCase()));
}

function optionOf(value: string | undefined): Option | undefined {
  return value === undefined ? undefined : { value, text: value };
}

/** Offers the typed text as the only option, because clients choose session and agent ids and the gateway has no list of them. */
async function asWritten(words: string): Promise<readonly Option[]> {
  const id = words.trim();
  return id === '' ? [] : [{ value: id, text: id }];
}

/** Offers the typed tags once they have the form in which clients send them. */
async function asTags(words: string): Promise<readonly Option[]> {
  const tags = words.trim();
  return /^[a-z][a-z0-9_]*=[^,]+(,\s*[a-z][a-z0-9_]*=[^,]+)*$/.test(tags) ? [{ value: tags, text: tags }] : [];
}

interface OwnerProps extends Props {
  readonly label: string;
  readonly name: 'team' | 'member';
}

/** A filter by team or member. It offers those that have records in the filtered time, because others would show nothing. */
function OwnerPicker({ label, name, filter, wanted }: OwnerProps) {
  const { [name]: id } = filter;
  const path = withQuery('usage/totals', { ...wanted, [name]: undefined, by: name });
  const found = useResource<Totals>(id === undefined ? undefined : path);
  const value = ownersIn(found.data).find((each) => each.value === id) ?? optionOf(id);
  const find = async (words: string) => fitting(ownersIn(await ask<Totals>(path)))(words);
  return <Picker label={label} value={value} onChange={(to) => changeQuery({ [name]: to })} find={find} />;
}

function ownersIn(totals: Totals | undefined): readonly Option[] {
  return (totals?.groups ?? []).flatMap(({ id, name }) => (id ? [{ value: id, text: name }] : []));
}

async function findKeys(words: string): Promise<readonly Option[]> {
  const { items } = await ask<List<ApiKey>>(withQuery('keys', { search: words.trim(), limit: 50 }));
  return items.map(({ id, name, suffix, status }) => ({
    value: id,
    text: name,
    hint: `…${suffix}${status === 'revoked' ? ' · revoked' : ''}`,
  }));
}

/** Fetches the name of the filtered key, because the page's address has only the key's id. */
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
  const bound = (name: string, value: string, set: (value: string) => void, limits: { min?: string; max?: string }) => (
    <label>
      <span class="quiet small">{name}</span>
      <input type="datetime-local" value={value} {...limits} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
  return (
    <form class="own-range stack" onSubmit={apply}>
      {bound('From', from, setFrom, { max: to })}
      {bound('To', to, setTo, { min: from })}
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

/** The filters of usage records except the time range, by their names in the page's address and in the API. */
export const FILTERS = [
  'key',
  'model',
  'upstream',
  'status',
  'session',
  'agent',
  'team',
  'member',
  'endUser',
  'tags',
] as const;

type Values = Readonly<Record<(typeof FILTERS)[number], string | undefined>>;

/** The filter of the usage records. The page's address contains the filter, so that users can bookmark and share it. */
interface Filter extends Values {
  readonly range: Range;
}

export function isNarrowed(filter: Filter): boolean {
  return FILTERS.some((name) => filter[name] !== undefined);
}

function valuesOf(read: (name: (typeof FILTERS)[number]) => string | undefined): Values {
  return Object.fromEntries(FILTERS.map((name) => [name, read(name)])) as Values;
}

export type Range =
  | { readonly preset: Preset }
  | { readonly preset: undefined; readonly from: string | undefined; readonly to: string | undefined };

const PRESETS = {
  '1h': { text: 'Last hour', hours: 1 },
  '24h': { text: 'Last 24 hours', hours: 24 },
  '7d': { text: 'Last 7 days', hours: 7 * 24 },
  '30d': { text: 'Last 30 days', hours: 30 * 24 },
  '90d': { text: 'Last 90 days', hours: 90 * 24 },
} as const;

type Preset = keyof typeof PRESETS;

const STANDARD: Preset = '7d';

export function readFilter(query: URLSearchParams): Filter {
  return { range: readRange(query), ...valuesOf((name) => query.get(name) ?? undefined) };
}

function readRange(query: URLSearchParams): Range {
  const [from, to] = [query.get('from') ?? undefined, query.get('to') ?? undefined];
  if (from !== undefined || to !== undefined) return { preset: undefined, from, to };
  const preset = query.get('range') ?? '';
  return { preset: Object.hasOwn(PRESETS, preset) ? (preset as Preset) : STANDARD };
}

/** Returns the query parameters that express a time range. A parameter that the page's address must not contain is undefined. */
function writeRange(range: Range): Record<string, string | undefined> {
  if (range.preset === undefined) return { range: undefined, from: range.from, to: range.to };
  return { range: range.preset === STANDARD ? undefined : range.preset, from: undefined, to: undefined };
}

/** A query of the API, by the names of its parameters. */
export type Query = Readonly<Record<string, string | undefined>>;

/** Returns the API query for a filter of usage records. A preset range has no end, so that it includes new records. */
export function toQuery(filter: Filter, nowMs: number): Query {
  const { range } = filter;
  const times =
    range.preset === undefined
      ? { from: range.from, to: range.to }
      : { from: new Date(nowMs - PRESETS[range.preset].hours * 3_600_000).toISOString(), to: undefined };
  return { ...times, ...valuesOf((name) => filter[name]) };
}
