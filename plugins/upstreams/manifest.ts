import { pluginManifest } from '../../core/gateway/manifest';
import upstreams from '.';

export = pluginManifest(upstreams);
