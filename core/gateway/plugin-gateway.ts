import type { Route } from '../api/route';
import type { OpenCalls } from '../calls/open-calls';
import type { Configuration } from '../configuration/configuration';
import type { LiveConfiguration } from '../configuration/live-configuration';
import type { ConfigurationSource } from '../configuration/source';
import type { Proxies } from '../http/proxies';
import type { Operators } from '../operators/operators';
import type { WebhookRules } from '../webhooks/webhooks';
import type { Gateway } from './gateway';

/**
 * Returns objections to replacing one configuration by another, as sentences for the operator. A revision with objections is applied only
 * by force. Plugins add their checks to `gateway.changeChecks`.
 */
type ChangeCheck = (before: Configuration, next: Configuration) => Promise<readonly string[]>;

/** The parts of the gateway that plugins receive: those that policies get, and those that can change the process. `configuration` is the one in force. */
export interface PluginGateway extends Gateway {
  readonly openCalls: OpenCalls;
  /** The absolute path of the folder for this process's own data. */
  readonly dataFolder: string;
  /** The proxies that the operator has declared in front of the gateway. */
  readonly proxies: Proxies;
  readonly liveConfiguration: LiveConfiguration;
  readonly configurationSource: ConfigurationSource;
  readonly operators: Operators;
  /** Which addresses webhooks may have. */
  readonly webhookRules: WebhookRules;
  /** The checks that run before a revision is applied. */
  readonly changeChecks: ChangeCheck[];
  readonly routes: () => readonly Route[];
}
