import type { Catalog } from '../catalog/catalog';
import type { Rollout } from '../rollouts/rollout';
import type { Problem, Schema } from '../settings';
import type { PipelineSettings } from './pipelines';

/** A top-level key of gateway.config.yml that a plugin owns; `gateway.section(name)` has its checked value. */
export interface Section {
  /** JSON Schema of what stands under the key. */
  readonly schema: Schema;
  /**
   * What the schema cannot say, asked once the schema has let the value pass. Paths begin below the key. The catalog and the
   * pipelines are undefined while something is wrong with them: what is looked for there is not missing then.
   */
  readonly check?: (
    value: never,
    catalog: Catalog | undefined,
    pipelines: readonly PipelineSettings[] | undefined,
  ) => readonly Pick<Problem, 'path' | 'message'>[];
  /** The changes that stand under it and go out in stages. */
  readonly rollouts?: (value: never) => readonly Rollout[];
}
