import { pluginManifest } from '../../core/gateway/manifest';
import retention from '.';

export = pluginManifest(retention);
