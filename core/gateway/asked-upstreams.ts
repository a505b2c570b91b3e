import { callableIn, type Entry, protocolsOf } from '../catalog/catalog';
import type { Protocol } from '../catalog/protocols';
import type { PipelineSettings } from '../configuration/pipelines';
import { hostTest } from './call-table';

/** Whether a pipeline asks an upstream of this name. Policies that narrow the upstreams of a pipeline call the setting so. */
export function asksUpstream({ steps }: PipelineSettings): (upstream: string) => boolean {
  const lists = steps.flatMap(({ settings }) => {
    const { upstreams } = (settings ?? {}) as { upstreams?: unknown };
    return Array.isArray(upstreams) && !upstreams.includes('*') ? [upstreams as unknown[]] : [];
  });
  return (name) => lists.every((list) => list.includes(name));
}

/** Returns the protocols of calls that a pipeline brings to a model of an upstream. Only strategies translate. */
export function protocolsAt({ steps }: PipelineSettings, entry: Entry): readonly Protocol[] {
  const isDirect = steps.some(({ policy }) => policy.name === 'direct-routing');
  return isDirect ? protocolsOf(entry) : callableIn(entry);
}

/** Whose calls of a path take which pipeline: an endpoint of this very host comes before one of any. */
export function pipelineAt(
  pipelines: readonly PipelineSettings[],
  host: string,
  path: string,
): PipelineSettings | undefined {
  const fitting = (fits: (test: ReturnType<typeof hostTest>) => boolean | undefined) =>
    pipelines.find(({ endpoints }) => endpoints.some((each) => each.paths.includes(path) && fits(hostTest(each))));
  return fitting((test) => test?.(host)) ?? fitting((test) => test === undefined);
}
