import { useState } from 'preact/hooks';
import { fullUsd, shareOf } from '../../money';
import { showCount, showPercent } from '../../numbers';
import { Button } from '../../parts/button';
import { Panel } from '../../parts/page';
import { type Option, Picker } from '../../parts/picker';
import { type Column, Table } from '../../parts/table';
import type { Resource } from '../../resource';
import { changeQuery, hrefOf, place } from '../../router';
import type { Totals } from '../../shapes';

/** What usage can be grouped by, besides tags. */
const USUAL: Option = { value: 'model', text: 'Model' };
const GROUPINGS: readonly Option[] = [
  USUAL,
  { value: 'key', text: 'Key' },
  { value: 'upstream', text: 'Upstream' },
  { value: 'team', text: 'Team' },
  { value: 'member', text: 'Member' },
  { value: 'session', text: 'Session' },
  { value: 'agent', text: 'Agent' },
  { value: 'endUser', text: 'End user' },
];

const TAG = /^tag:([a-z][a-z0-9_]{0,31})$/;

/** Returns what the page's address groups usage by. Default: the model. */
export function groupedBy(): Option {
  const by = place.value.query.get('by') ?? USUAL.value;
  const [, tag] = TAG.exec(by) ?? [];
  if (tag !== undefined) return { value: by, text: tag };
  return GROUPINGS.find(({ value }) => value === by) ?? USUAL;
}

/** Offers the groupings that fit the typed words, and the words themselves as the name of a tag. */
async function findGroupings(words: string): Promise<readonly Option[]> {
  const wanted = words.trim().toLowerCase();
  const found = GROUPINGS.filter(({ text }) => text.toLowerCase().includes(wanted));
  const tag = `tag:${wanted}`;
  return TAG.test(tag) ? [...found, { value: tag, text: wanted, hint: 'tag' }] : found;
}

/** The choice of what chart and table are grouped by. Names of tags are typed, because clients choose them. */
export function GroupPicker() {
  const by = groupedBy();
  return (
    <Picker
      label="Group by"
      isNeeded
      hint="Search, or name a tag"
      align="end"
      value={by === USUAL ? undefined : by}
      onChange={(value) => changeQuery({ by: value === USUAL.value ? undefined : value }, { replace: true })}
      find={findGroupings}
    />
  );
}

type Group = NonNullable<Totals['groups']>[number];

/** How many groups the table shows at first. */
const FEW = 10;

/** The groups of the filtered calls, the most expensive first. The name of a group narrows the filter to it. */
export function GroupsTable({ totals }: { readonly totals: Resource<Totals> }) {
  const by = groupedBy();
  const [isWhole, setWhole] = useState(false);
  const { data } = totals;
  const groups = data?.groups;
  const whole = data?.costUsd ?? '0';
  const columns: readonly Column<Group>[] = [
    { title: by.text, cell: (group) => <GroupName group={group} by={by.value} /> },
    { title: 'Calls', isNumber: true, cell: ({ calls }) => showCount(calls) },
    { title: 'Cost', isNumber: true, cell: ({ costUsd }) => fullUsd(costUsd) },
    {
      title: 'Share',
      isNumber: true,
      room: 'from-m',
      cell: ({ costUsd }) => showPercent(shareOf(costUsd, whole)),
    },
  ];
  const more = (groups?.length ?? 0) - FEW;
  return (
    <Panel
      title={`Usage by ${by.text.toLowerCase()}`}
      look={totals.isLoading && data !== undefined ? 'is-stale' : undefined}
    >
      <Table
        label={`Usage by ${by.text.toLowerCase()}`}
        caption={`Calls and cost by ${by.text.toLowerCase()}, most expensive first`}
        columns={columns}
        rows={isWhole ? groups : groups?.slice(0, FEW)}
        keyOf={({ id }) => String(id)}
        none="No calls."
      />
      {more > 0 && (
        <p class="table-more">
          <Button look="slight" onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show fewer' : `Show ${showCount(more)} more`}
          </Button>
        </p>
      )}
    </Panel>
  );
}

function GroupName({ group: { id, name }, by }: { readonly group: Group; readonly by: string }) {
  // No filter selects the calls without a value, or the calls of all cheaper groups together.
  if (id === null || id === '') return <span class="quiet">{name}</span>;
  const [, tag] = TAG.exec(by) ?? [];
  const query = new URLSearchParams(place.value.query);
  if (tag === undefined) query.set(by, id);
  else query.set('tags', withTag(query.get('tags') ?? '', tag, id));
  return (
    <a class="plain-link" href={hrefOf(`/usage?${query}`)} title="Show only these calls">
      {name}
    </a>
  );
}

/** Returns the tags of the filter with one more, which replaces the tag of the same name. */
function withTag(tags: string, name: string, value: string): string {
  const others = tags.split(',').filter((each) => each !== '' && !each.trim().startsWith(`${name}=`));
  return [...others, `${name}=${value}`].join(',');
}
