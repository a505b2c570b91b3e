import { useState } from 'preact/hooks';
import { ask } from '../../../api';
import { plural } from '../../../numbers';
import { ActDialog } from '../../../parts/act-dialog';
import { Ago } from '../../../parts/ago';
import { Badge } from '../../../parts/badge';
import { Failed } from '../../../parts/states';
import { type Column, Table } from '../../../parts/table';
import { useResource } from '../../../resource';
import type { List } from '../../../shapes';
import { mayChange } from '../../session';
import type { ConfigNode, ConfigStatus, Revision } from '../../shapes';
import { ApplyDialog } from './apply-dialog';
import { Problems } from './changes';
import { RevisionSheet } from './revision-sheet';

const EVERY_MS = 3_000;

type Open =
  | { readonly dialog: 'apply'; readonly newest: number | undefined }
  | { readonly dialog: 'reload' }
  | { readonly dialog: 'look' | 'restore'; readonly revision: Revision };

export function ConfigurationPage() {
  const status = useResource<ConfigStatus>('/admin/v1/config/status', { everyMs: EVERY_MS });
  const revisions = useResource<List<Revision>>('/admin/v1/config/revisions', { everyMs: EVERY_MS });
  const [open, setOpen] = useState<Open>();
  const { data, failure } = status;
  const isFromFiles = data?.source === 'file';
  const close = () => setOpen(undefined);
  const closeAndReload = () => {
    close();
    status.reload();
    revisions.reload();
  };
  return (
    <div class="page">
      <header class="page-head">
        <h1>Configuration</h1>
        {data?.newest != null && <span class="quiet small">revision {data.newest.number} is the newest</span>}
        <span class="grow" />
        {mayChange() && data !== undefined && (
          <>
            <button type="button" class="button" onClick={() => setOpen({ dialog: 'reload' })}>
              Reload
            </button>
            {!isFromFiles && (
              <button
                type="button"
                class="button primary"
                onClick={() => setOpen({ dialog: 'apply', newest: data.newest?.number })}
              >
                Edit
              </button>
            )}
          </>
        )}
      </header>
      {failure !== undefined && <Failed failure={failure} onRetry={status.reload} />}
      {isFromFiles && (
        <p class="note">
          This gateway reads its configuration from files. Edit <code>gateway.config.yml</code> on every node. With{' '}
          <code>config.source: database</code> you can edit it here.
        </p>
      )}
      <section class="panel" aria-labelledby="nodes-title">
        <header class="panel-head">
          <h2 id="nodes-title">Nodes</h2>
        </header>
        <Table
          label="Nodes"
          caption="Nodes and the configuration that each has in force"
          columns={nodeColumns(data)}
          rows={data?.nodes}
          keyOf={({ node }) => node}
          bones={2}
          none="No node has reported yet."
        />
        {data?.nodes.map(
          ({ node, name, failure: refused }) =>
            refused !== null && (
              <div class="refused" key={node}>
                <h3>
                  {name} rejected {refused.number === null ? 'its file' : `revision ${refused.number}`}
                </h3>
                <Problems problems={refused.problems} />
              </div>
            ),
        )}
      </section>
      <section class="panel" aria-labelledby="history-title">
        <header class="panel-head">
          <h2 id="history-title">History</h2>
        </header>
        {revisions.failure !== undefined && <Failed failure={revisions.failure} onRetry={revisions.reload} />}
        <Table
          label="Revisions"
          caption="Revisions that were applied, newest first"
          columns={[
            ...REVISION_COLUMNS,
            {
              title: <span class="unseen">Actions</span>,
              look: 'actions',
              cell: (revision) => (
                <>
                  <button type="button" class="button slight" onClick={() => setOpen({ dialog: 'look', revision })}>
                    Details<span class="unseen"> of revision {revision.number}</span>
                  </button>
                  {mayChange() && revision.number !== data?.newest?.number && (
                    <button
                      type="button"
                      class="button slight"
                      onClick={() => setOpen({ dialog: 'restore', revision })}
                    >
                      Roll back<span class="unseen"> to revision {revision.number}</span>
                    </button>
                  )}
                </>
              ),
            },
          ]}
          rows={revisions.data?.items}
          keyOf={({ number }) => String(number)}
          none={isFromFiles ? 'A configuration from files has no history.' : 'No revision was applied yet.'}
        />
      </section>
      {open?.dialog === 'look' && (
        <RevisionSheet revision={open.revision} all={revisions.data?.items ?? []} onClose={close} />
      )}
      {open?.dialog === 'apply' && <ApplyDialog newest={open.newest} onClose={close} onDone={closeAndReload} />}
      {open?.dialog === 'restore' && (
        <ApplyDialog restores={open.revision} newest={data?.newest?.number} onClose={close} onDone={closeAndReload} />
      )}
      {open?.dialog === 'reload' && (
        <ActDialog
          title="Reload the configuration?"
          verb="Reload"
          done="The configuration is reloaded."
          act={() => ask('/admin/v1/config/reload', { method: 'POST', body: {} })}
          onDone={closeAndReload}
          onClose={close}
        >
          {() => (
            <p>
              The node that answers this page reads {isFromFiles ? 'its files' : 'the newest revision'} again. A
              configuration with mistakes changes nothing.
            </p>
          )}
        </ActDialog>
      )}
    </div>
  );
}

function nodeColumns(status: ConfigStatus | undefined): readonly Column<ConfigNode>[] {
  const newest = status?.newest?.revision;
  return [
    { title: 'Node', cell: ({ name }) => <span class="cut key-name">{name}</span> },
    {
      title: 'Configuration',
      cell: ({ revision, failure }) =>
        failure !== null ? (
          <Badge tone="bad">Rejected the newest</Badge>
        ) : newest !== undefined && revision !== newest ? (
          <Badge tone="warn">Older</Badge>
        ) : (
          <Badge tone="good">In force</Badge>
        ),
    },
    {
      title: 'Revision',
      cell: ({ number, revision }) => (
        <>
          {number !== null && `${number} `}
          <span class="mono quiet">{revision}</span>
        </>
      ),
    },
    { title: 'Since', room: 'from-m', look: 'quiet small', cell: ({ since }) => <Ago at={since} /> },
    { title: 'Seen', room: 'from-m', look: 'quiet small', cell: ({ seenAt }) => <Ago at={seenAt} /> },
    {
      title: 'Needs a restart',
      room: 'from-l',
      look: 'small',
      cell: ({ restartNeeded }) =>
        restartNeeded.length === 0 ? (
          <span class="faint">No</span>
        ) : (
          <span title={restartNeeded.join(', ')}>for {plural(restartNeeded.length, 'change')}</span>
        ),
    },
  ];
}

const REVISION_COLUMNS: readonly Column<Revision>[] = [
  {
    title: 'Revision',
    cell: ({ number, revision }) => (
      <>
        {number} <span class="mono quiet">{revision}</span>
      </>
    ),
  },
  { title: 'Applied', look: 'quiet small', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  { title: 'By', room: 'from-m', cell: ({ actor }) => actor },
  {
    title: 'Note',
    room: 'from-m',
    look: 'small',
    cell: ({ note, restores }) =>
      note ?? (restores === null ? <span class="faint">–</span> : `restores revision ${restores}`),
  },
];
