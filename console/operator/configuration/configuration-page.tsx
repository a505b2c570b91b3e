import { ask } from '../../api';
import { plural } from '../../numbers';
import { Button } from '../../parts/button';
import { decide, showDialog } from '../../parts/dialog';
import { Page } from '../../parts/page';
import { actionsColumn, type Column, TablePanel, timeColumn } from '../../parts/table';
import { Badge, NONE } from '../../parts/values';
import { useResource } from '../../resource';
import type { List } from '../../shapes';
import { mayChange } from '../session';
import type { ConfigNode, ConfigStatus, Revision } from '../shapes';
import { ApplyDialog, Problems } from './apply-dialog';
import { RevisionSheet } from './revision-sheet';

const EVERY_MS = 3_000;

export function ConfigurationPage() {
  const status = useResource<ConfigStatus>('/admin/v1/config/status', { everyMs: EVERY_MS });
  const revisions = useResource<List<Revision>>('/admin/v1/config/revisions', { everyMs: EVERY_MS });
  const { data } = status;
  const isFromFiles = data?.source === 'file';
  const newest = data?.newest?.number;
  const actions = mayChange() && data !== undefined && (
    <>
      <Button onClick={() => reload(isFromFiles)}>Reload</Button>
      {!isFromFiles && (
        <Button look="primary" onClick={() => showDialog(<ApplyDialog newest={newest} />)}>
          Edit
        </Button>
      )}
    </>
  );
  const revisionActions = actionsColumn<Revision>((revision) => (
    <>
      <Button
        look="slight"
        of={`of revision ${revision.number}`}
        onClick={() => showDialog(<RevisionSheet revision={revision} all={revisions.data?.items ?? []} />)}
      >
        Details
      </Button>
      {mayChange() && revision.number !== newest && (
        <Button
          look="slight"
          of={`to revision ${revision.number}`}
          onClick={() => showDialog(<ApplyDialog restores={revision} newest={newest} />)}
        >
          Roll back
        </Button>
      )}
    </>
  ));
  return (
    <Page
      title="Configuration"
      beside={newest !== undefined && <span class="quiet small">revision {newest} is the newest</span>}
      actions={actions}
      from={status}
    >
      {isFromFiles && (
        <p class="note">
          This gateway reads its configuration from files. Edit <code>gateway.config.yml</code> on every node. With{' '}
          <code>config.source: database</code> you can edit it here.
        </p>
      )}
      <TablePanel
        title="Nodes"
        caption="Nodes and the configuration that each has in force"
        columns={nodeColumns(data)}
        rows={data?.nodes}
        keyOf={({ node }) => node}
        bones={2}
        none="No node has reported yet."
      >
        {data?.nodes.map(
          ({ node, name, failure: refused }) =>
            refused !== null && (
              <div class="refused stack" key={node}>
                <h3>
                  {name} rejected {refused.number === null ? 'its file' : `revision ${refused.number}`}
                </h3>
                <Problems problems={refused.problems} />
              </div>
            ),
        )}
      </TablePanel>
      <TablePanel
        title="History"
        caption="Revisions that were applied, newest first"
        columns={[...REVISION_COLUMNS, revisionActions]}
        list={revisions}
        keyOf={({ number }) => String(number)}
        none={isFromFiles ? 'A configuration from files has no history.' : 'No revision was applied yet.'}
      />
    </Page>
  );
}

function reload(isFromFiles: boolean): void {
  decide({
    title: 'Reload the configuration?',
    verb: 'Reload',
    text: (
      <p>
        The node that answers this page reads {isFromFiles ? 'its files' : 'the newest revision'} again. A configuration
        with mistakes changes nothing.
      </p>
    ),
    act: () => ask('/admin/v1/config/reload', { method: 'POST', body: {} }),
    done: 'The configuration is reloaded.',
  });
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
    timeColumn('Since', ({ since }) => since, { room: 'from-m' }),
    timeColumn('Seen', ({ seenAt }) => seenAt, { room: 'from-m' }),
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
  timeColumn('Applied', ({ createdAt }) => createdAt),
  { title: 'By', room: 'from-m', cell: ({ actor }) => actor },
  {
    title: 'Note',
    room: 'from-m',
    look: 'small',
    cell: ({ note, restores }) => note ?? (restores === null ? NONE : `restores revision ${restores}`),
  },
];
