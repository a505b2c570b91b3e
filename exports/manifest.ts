/** `tollgate/manifest`: what the file that system.config.yml names exports. */
export { type Manifest, pluginManifest, policiesManifest } from '../core/gateway/manifest';
