import type { Catalog } from '../catalog/catalog';
import type { Rollout } from '../rollouts/rollout';
import type { Problem, Schema } from '../settings';
import type { PipelineSettings } from './pipelines';

/** A top-level key of gateway.config.yml that a plugin owns; `gateway.section(name)` has its checked value. */
export interface Section {
  /** JSON Schema of the value under the key. */
  readonly schema: Schema;
  /**
   * Checks what the schema cannot express, after the schema has accepted the value. Paths begin below the key. The catalog and
   * the pipelines are undefined while they have mistakes, so the check must not report names as missing from them.
   */
  readonly check?: (
    value: never,
    catalog: Catalog | undefined,
    pipelines: readonly PipelineSettings[] | undefined,
  ) => readonly Pick<Problem, 'path' | 'message'>[];
  /** Returns the changes under this key that go out in stages. */
  readonly rollouts?: (value: never) => readonly Rollout[];
}
