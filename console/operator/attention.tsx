import type { ComponentChildren } from 'preact';
import { plural } from '../numbers';
import { Panel } from '../parts/page';
import { Bone } from '../parts/states';
import { Badge, type Tone, UpstreamState } from '../parts/values';
import { useResource } from '../resource';
import { hrefOf } from '../router';
import type { List } from '../shapes';
import type { ConfigStatus, Rollout, Upstream } from './shapes';
import { reasonOf } from './upstreams/upstream-sheet';

const EVERY_MS = 3_000;

interface Finding {
  readonly key: string;
  readonly badge: ComponentChildren;
  readonly href: string;
  readonly what: ComponentChildren;
  readonly why: ComponentChildren;
}

/** The conditions that need the operator's attention first: upstreams without calls, running rollouts, nodes with different configurations. */
export function Attention() {
  const upstreams = useResource<List<Upstream>>('/admin/v1/upstreams', { everyMs: EVERY_MS });
  const rollouts = useResource<List<Rollout>>('/admin/v1/rollouts', { everyMs: EVERY_MS });
  const configuration = useResource<ConfigStatus>('/admin/v1/config/status', { everyMs: EVERY_MS });
  const all = [upstreams, rollouts, configuration];
  const unknown = all.filter(({ data, failure }) => data === undefined && failure !== undefined);
  const isLoading = all.some(({ data, failure }) => data === undefined && failure === undefined);
  const findings = [
    ...(upstreams.data?.items.flatMap(ofUpstream) ?? []),
    ...(rollouts.data?.items.flatMap(ofRollout) ?? []),
    ...(configuration.data === undefined ? [] : ofNodes(configuration.data)),
  ];
  return (
    <Panel title="Needs attention">
      <ul class="findings small">
        {findings.map(({ key, badge, href, what, why }) => (
          <li key={key}>
            {badge}
            <span class="finding">
              <a href={href}>{what}</a> <span class="quiet">{why}</span>
            </span>
          </li>
        ))}
        {isLoading && findings.length === 0 && (
          <li>
            <Bone width="24ch" />
          </li>
        )}
        {unknown.map(({ failure }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the item has no other key
          <li key={at}>
            <Badge tone="warn">Unknown</Badge> <span class="quiet">{failure?.message}</span>
          </li>
        ))}
        {findings.length === 0 && unknown.length === 0 && !isLoading && (
          <li>
            <Badge tone="good">All good</Badge>
            <span class="quiet">
              {plural(upstreams.data?.items.length ?? 0, 'upstream')} available,{' '}
              {plural(configuration.data?.nodes.length ?? 0, 'node')} with the same configuration, no rollout running.
            </span>
          </li>
        )}
      </ul>
    </Panel>
  );
}

function ofUpstream(upstream: Upstream): readonly Finding[] {
  const { name, state, takenOut } = upstream;
  if (state === 'available') return [];
  const why = (
    <>
      {takenOut !== null && 'by '}
      {reasonOf(upstream)}
    </>
  );
  const href = hrefOf(`/upstreams?upstream=${encodeURIComponent(name)}`);
  return [{ key: `upstream ${name}`, badge: <UpstreamState state={state} />, href, what: name, why }];
}

const ROLLOUT_TONES: Readonly<Partial<Record<Rollout['status'], Tone>>> = {
  running: 'accent',
  paused: 'warn',
  held: 'bad',
  'rolled-back': 'bad',
};

function ofRollout({ name, status, share, reason, waitsFor }: Rollout): readonly Finding[] {
  const tone = ROLLOUT_TONES[status];
  if (tone === undefined) return [];
  const badge = <Badge tone={tone}>Rollout {status.replace('-', ' ')}</Badge>;
  const why = status === 'running' ? `${share} % of calls; ${waitsFor ?? ''}` : (reason ?? '');
  return [{ key: `rollout ${name}`, badge, href: hrefOf('/rollouts'), what: name, why }];
}

function ofNodes({ newest, nodes }: ConfigStatus): readonly Finding[] {
  const href = hrefOf('/configuration');
  const revisions = new Set(nodes.map(({ revision }) => revision));
  const refused = nodes.filter(({ failure }) => failure !== null);
  const old = nodes.filter(({ revision }) => newest !== null && revision !== newest.revision);
  const late = newest === null && revisions.size > 1 ? nodes : old;
  return [
    ...refused.map(({ node, name, failure }) => ({
      key: `refused ${node}`,
      badge: <Badge tone="bad">Configuration rejected</Badge>,
      href,
      what: name,
      why: failure?.problems[0]?.message ?? '',
    })),
    ...(late.length === 0
      ? []
      : [
          {
            key: 'revisions',
            badge: <Badge tone="warn">Configurations differ</Badge>,
            href,
            what: plural(late.length, 'node'),
            why: newest === null ? 'The nodes have different files.' : `The newest revision is ${newest.number}.`,
          },
        ]),
  ];
}
