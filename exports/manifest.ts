/** `tollgate/manifest`: functions that make the manifest, which is the export of the file that system.config.yml names. */
export {
  type Manifest,
  manifest,
  type PackageExports,
  pluginManifest,
  policiesManifest,
} from '../core/gateway/manifest';
