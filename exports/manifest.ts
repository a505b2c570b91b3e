/** `tollgate/manifest`: functions that make a package's manifest. The file that `system.config.yml` names exports this manifest. */
export {
  type Manifest,
  manifest,
  type PackageExports,
  pluginManifest,
  policiesManifest,
} from '../core/gateway/manifest';
