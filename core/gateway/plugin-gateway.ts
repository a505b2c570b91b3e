import type { Route } from '../api/route';
import type { OpenCalls } from '../calls/open-calls';
import type { ChangeCheck } from '../configuration/change-checks';
import type { LiveConfiguration } from '../configuration/live-configuration';
import type { ConfigurationSource } from '../configuration/source';
import type { Proxies } from '../http/proxies';
import type { Operators } from '../operators/operators';
import type { Gateway } from './gateway';

/**
 * What plugins are given when they start: all that policies have, and what changes the process. `configuration` is the one in force
 * at the moment it is read.
 */
export interface PluginGateway extends Gateway {
  readonly openCalls: OpenCalls;
  /** The folder of this process's own data, absolute. */
  readonly dataFolder: string;
  /** Which proxies the operator says stand in front. */
  readonly proxies: Proxies;
  readonly liveConfiguration: LiveConfiguration;
  readonly configurationSource: ConfigurationSource;
  readonly operators: Operators;
  /** Asked before a revision is applied. */
  readonly changeChecks: ChangeCheck[];
  /** The endpoints of all plugins. */
  readonly routes: () => readonly Route[];
}
