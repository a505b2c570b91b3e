import { useState } from 'preact/hooks';
import { withQuery } from '../../api';
import { CopyButton } from '../../parts/copy-button';
import { Dialog } from '../../parts/dialog';
import { Fact } from '../../parts/fact';
import { Pager, usePages } from '../../parts/pager';
import { Search } from '../../parts/search';
import { Empty, Failed } from '../../parts/states';
import { type Column, Table } from '../../parts/table';
import { useResource } from '../../resource';
import { changeQuery, hrefOf, place } from '../../router';
import type { List } from '../../shapes';
import { showMoment, showWhole } from '../../times';
import type { Change } from '../shapes';

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
  const filter = withQuery('/admin/v1/audit', { ...given, limit: PAGE_ROWS });
  const pages = usePages(filter);
  const path = pages.cursor === undefined ? filter : `${filter}&cursor=${encodeURIComponent(pages.cursor)}`;
  const changes = useResource<List<Change>>(path, { everyMs: EVERY_MS });
  const [looked, setLooked] = useState<Change>();
  const { data, failure, isLoading } = changes;
  const nextCursor = data?.nextCursor ?? null;
  return (
    <div class="page">
      <header class="page-head">
        <h1>Audit</h1>
      </header>
      <div class="toolbar">
        {FILTERS.map(({ name, label }) => (
          <Search
            key={name}
            label={label}
            value={given[name] ?? ''}
            onChange={(words) => changeQuery({ [name]: words.trim() }, { replace: true })}
          />
        ))}
      </div>
      {failure !== undefined && <Failed failure={failure} onRetry={changes.reload} />}
      <section class="panel" aria-label="Changes">
        {data?.items.length === 0 && !isLoading ? (
          <Empty icon="audit" title="No matching changes">
            <p class="quiet">
              A filter matches the whole value, such as <code>admin</code>, <code>key.revoke</code> or{' '}
              <code>account:</code>
              with its id.
            </p>
          </Empty>
        ) : (
          <Table
            label="Changes"
            caption="Changes, newest first"
            columns={columns(setLooked)}
            rows={data?.items}
            keyOf={({ id }) => id}
            bones={8}
            isStale={isLoading}
          />
        )}
      </section>
      <Pager
        page={pages.number}
        onNewer={pages.number > 1 ? pages.newer : undefined}
        onOlder={nextCursor === null ? undefined : () => pages.older(nextCursor)}
      />
      {looked !== undefined && <ChangeSheet change={looked} onClose={() => setLooked(undefined)} />}
    </div>
  );
}

function columns(look: (change: Change) => void): readonly Column<Change>[] {
  return [
    {
      title: 'Time',
      look: 'figure small',
      cell: ({ createdAt }) => (
        <time dateTime={createdAt} title={showWhole(createdAt)}>
          {showMoment(createdAt)}
        </time>
      ),
    },
    { title: 'Action', look: 'mono', cell: ({ action }) => action },
    { title: 'Actor', room: 'from-m', cell: ({ actor }) => <span class="cut key-name">{actor}</span> },
    { title: 'Subject', look: 'small', cell: ({ subject }) => <Subject subject={subject} /> },
    {
      title: <span class="unseen">Actions</span>,
      look: 'actions',
      cell: (change) => (
        <button type="button" class="button slight" onClick={() => look(change)}>
          Details<span class="unseen"> of {change.action}</span>
        </button>
      ),
    },
  ];
}

function Subject({ subject }: { readonly subject: string }) {
  const accountId = /^account:(.+)$/.exec(subject)?.[1];
  const words = <span class="mono cut subject">{subject}</span>;
  return accountId === undefined ? words : <a href={hrefOf(`/accounts/${accountId}`)}>{words}</a>;
}

function ChangeSheet({ change, onClose }: { readonly change: Change; readonly onClose: () => void }) {
  const { action, actor, subject, createdAt, before, after } = change;
  return (
    <Dialog title={action} kind="sheet" onClose={onClose}>
      <div class="record">
        <dl class="facts">
          <Fact name="Time">{showWhole(createdAt)}</Fact>
          <Fact name="Actor">{actor}</Fact>
          <Fact name="Subject">
            <span class="copied">
              <span class="mono">{subject}</span>
              <CopyButton text={subject} label="Copy the subject" />
            </span>
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
