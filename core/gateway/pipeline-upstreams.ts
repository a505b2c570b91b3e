import { callableIn, type Entry, protocolsOf } from '../catalog/catalog';
import type { Protocol } from '../catalog/protocols';
import type { PipelineSettings } from '../configuration/pipelines';
import { hostTest } from './call-table';
import { declaredBy } from './pipeline';

/** Returns a function that tells whether a pipeline may call the upstream with a given name. Policies limit this by their setting `upstreams`. */
export function asksUpstream({ steps }: PipelineSettings): (upstream: string) => boolean {
  const lists = steps.flatMap(({ settings }) => {
    const { upstreams } = (settings ?? {}) as { upstreams?: unknown };
    return Array.isArray(upstreams) && !upstreams.includes('*') ? [upstreams as unknown[]] : [];
  });
  return (name) => lists.every((list) => list.includes(name));
}

/** Returns the protocols in which a pipeline can call a model of an upstream. */
export function protocolsAt(pipeline: PipelineSettings, entry: Entry): readonly Protocol[] {
  return declaredBy(pipeline).translates === true ? callableIn(entry) : protocolsOf(entry);
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
