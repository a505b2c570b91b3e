/** `tollgate/plugin`: the types and functions for writing a plugin and its endpoints. */
export type {
  AccountHandler,
  AccountRoute,
  AdminHandler,
  Handler,
  KeyHandler,
  Method,
  OwnHosts,
  Route,
  RouteAnswer,
  SessionHandler,
  UpgradeHandler,
  Visit,
} from '../core/api/route';
export type { Section } from '../core/configuration/configuration';
export { definePlugin, type Plugin, type PluginDefinition } from '../core/gateway/plugin';
export type { PluginGateway } from '../core/gateway/plugin-gateway';
export type { Operator } from '../core/operators/operators';
export type { OperatorRole } from '../core/operators/roles';
