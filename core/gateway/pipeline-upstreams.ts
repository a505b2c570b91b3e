import { callableIn, type Entry, protocolsOf } from '../catalog/catalog';
import type { Protocol } from '../catalog/protocols';
import type { PipelineSettings } from '../configuration/pipelines';
import { hostTest } from './call-table';

/** Returns whether a pipeline may ask an upstream of this name. Policies that narrow the upstreams of a pipeline call their setting `upstreams`. */
export function asksUpstream({ steps }: PipelineSettings): (upstream: string) => boolean {
  const lists = steps.flatMap(({ settings }) => {
    const { upstreams } = (settings ?? {}) as { upstreams?: unknown };
    return Array.isArray(upstreams) && !upstreams.includes('*') ? [upstreams as unknown[]] : [];
  });
  return (name) => lists.every((list) => list.includes(name));
}

/** Returns the protocols in which a pipeline can call a model of an upstream. Only strategy-routing translates. */
export function protocolsAt({ steps }: PipelineSettings, entry: Entry): readonly Protocol[] {
  const isDirect = steps.some(({ policy }) => policy.name === 'direct-routing');
  return isDirect ? protocolsOf(entry) : callableIn(entry);
}

/** Returns the pipeline of a host and path. An endpoint for exactly this host comes before one for any host. */
export function pipelineAt(
  pipelines: readonly PipelineSettings[],
  host: string,
  path: string,
): PipelineSettings | undefined {
  const fitting = (fits: (test: ReturnType<typeof hostTest>) => boolean | undefined) =>
    pipelines.find(({ endpoints }) => endpoints.some((each) => each.paths.includes(path) && fits(hostTest(each))));
  return fitting((test) => test?.(host)) ?? fitting((test) => test === undefined);
}
