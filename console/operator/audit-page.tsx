import { withQuery } from '../api';
import { Button } from '../parts/button';
import { Dialog, showDialog } from '../parts/dialog';
import { Page } from '../parts/page';
import { Pager, usePages } from '../parts/pager';
import { Empty } from '../parts/states';
import { actionsColumn, type Column, TablePanel, timeColumn } from '../parts/table';
import { QuerySearch } from '../parts/toolbar';
import { Copied, Fact } from '../parts/values';
import { useResource } from '../resource';
import { hrefOf, place } from '../router';
import type { List } from '../shapes';
import { showMoment, showWhole } from '../times';
import type { Change } from './shapes';

const PAGE_ROWS = 50;
const EVERY_MS = 5_000;

const FILTERS = [
  { name: 'actor', label: 'Actor' },
  { name: 'action', label: 'Action' },
  { name: 'subject', label: 'Subject' },
] as const;

export function AuditPage() {
  const { query } = place.value;
  const given = Object.fromEntries(FILTERS.map(({ name }) => [name, query.get(name) ?? '']));
  const pages = usePages(withQuery('/admin/v1/audit', { ...given, limit: PAGE_ROWS }));
  const changes = useResource<List<Change>>(pages.path, { everyMs: EVERY_MS });
  const tools = (
    <div class="toolbar row">
      {FILTERS.map(({ name, label }) => (
        <QuerySearch key={name} label={label} name={name} />
      ))}
    </div>
  );
  const hint = (
    <>
      A filter matches the whole value, such as <code>admin</code>, <code>key.revoke</code> or <code>account:</code>
      with its id.
    </>
  );
  return (
    <Page title="Audit" tools={tools} from={changes}>
      <TablePanel
        title="Changes"
        isWholePage
        caption="Changes, newest first"
        columns={COLUMNS}
        list={changes}
        keyOf={({ id }) => id}
        bones={8}
        empty={<Empty icon="audit" title="No matching changes" text={hint} />}
      />
      <Pager {...pages.pagerOf(changes.data)} />
    </Page>
  );
}

const COLUMNS: readonly Column<Change>[] = [
  timeColumn('Time', ({ createdAt }) => createdAt, { look: 'figure small', as: showMoment }),
  { title: 'Action', look: 'mono', cell: ({ action }) => action },
  { title: 'Actor', room: 'from-m', cell: ({ actor }) => <span class="cut key-name">{actor}</span> },
  { title: 'Subject', look: 'small', cell: ({ subject }) => <Subject subject={subject} /> },
  actionsColumn((change) => (
    <Button look="slight" of={`of ${change.action}`} onClick={() => showDialog(<ChangeSheet change={change} />)}>
      Details
    </Button>
  )),
];

function Subject({ subject }: { readonly subject: string }) {
  const accountId = /^account:(.+)$/.exec(subject)?.[1];
  const words = <span class="mono cut subject">{subject}</span>;
  return accountId === undefined ? words : <a href={hrefOf(`/accounts/${accountId}`)}>{words}</a>;
}

function ChangeSheet({ change }: { readonly change: Change }) {
  const { action, actor, subject, createdAt, before, after } = change;
  return (
    <Dialog title={action} kind="sheet">
      <div class="record">
        <dl class="facts">
          <Fact name="Time">{showWhole(createdAt)}</Fact>
          <Fact name="Actor">{actor}</Fact>
          <Fact name="Subject">
            <Copied text={subject} label="Copy the subject" />
          </Fact>
        </dl>
        <Values title="Before" values={before} />
        <Values title="After" values={after} />
      </div>
    </Dialog>
  );
}

function Values({ title, values }: { readonly title: string; readonly values: Change['before'] }) {
  if (values === null) return null;
  return (
    <>
      <h3>{title}</h3>
      <dl class="facts">
        {Object.entries(values).map(([name, value]) => (
          <Fact key={name} name={name}>
            <span class="mono">{typeof value === 'string' ? value : JSON.stringify(value)}</span>
          </Fact>
        ))}
      </dl>
    </>
  );
}
