import { withQuery } from '../../api';
import { Button } from '../../parts/button';
import { Icon } from '../../parts/icon';
import { Page, Panel } from '../../parts/page';
import { Pager, usePages } from '../../parts/pager';
import { Empty } from '../../parts/states';
import { chosenIn, QueryChoice, QuerySearch } from '../../parts/toolbar';
import { useResource } from '../../resource';
import { hrefOf, place } from '../../router';
import { ownAccess } from '../../session';
import type { ApiKey, List } from '../../shapes';
import { openKeyDialog } from './key-dialogs';
import { KeysTable } from './keys-table';

const STATUSES = [
  { value: 'active', text: 'Active' },
  { value: 'revoked', text: 'Revoked' },
  { value: 'all', text: 'All' },
] as const;

const PAGE_ROWS = 50;
/** The interval of reading keys again, in ms, because their spending grows while the page is open. */
const EVERY_MS = 5_000;

export function KeysPage() {
  const access = ownAccess();
  const search = place.value.query.get('search') ?? '';
  const status = chosenIn('status', STATUSES);
  const filter = { search, status: status === 'all' ? undefined : status };
  const pages = usePages(withQuery('keys', { ...filter, limit: PAGE_ROWS }));
  const keys = useResource<List<ApiKey>>(pages.path, { everyMs: EVERY_MS });
  const create = access.role !== 'viewer' && (
    <Button look="primary" onClick={() => openKeyDialog(access)}>
      <Icon name="plus" /> Create a key
    </Button>
  );
  const tools = (
    <div class="toolbar row">
      <QuerySearch label="Search keys" name="search" />
      <QueryChoice label="Keys to show" name="status" options={STATUSES} />
    </div>
  );
  const empty =
    search !== '' || status !== 'active' ? (
      <Empty
        icon="search"
        title="No matching keys"
        text="Search for a part of the name, or for the shown end of a key."
      />
    ) : (
      <Empty
        icon="keys"
        title="No keys yet"
        text="Programs call the gateway with a key. A key can have a spending limit, a rate limit, and a list of models."
      >
        {create}
      </Empty>
    );
  return (
    <Page title="API Keys" actions={create} tools={tools} from={keys}>
      <Panel label="Keys">
        <KeysTable
          list={keys}
          access={access}
          hrefOf={({ id }) => hrefOf(`/usage?key=${id}`)}
          isLastUseKnown
          empty={empty}
        />
      </Panel>
      <Pager {...pages.pagerOf(keys.data)} />
    </Page>
  );
}
