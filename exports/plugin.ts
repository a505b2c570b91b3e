/** `tollgate/plugin`: what a plugin is written with, and the endpoints it adds. */
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
