/** `tollgate/manifest`: what the file that system.config.yml names exports. */
export { type Brought, type Manifest, manifest, pluginManifest, policiesManifest } from '../core/gateway/manifest';
