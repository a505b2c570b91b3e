import { pluginManifest } from '../../core/gateway/manifest';
import service from '.';

export = pluginManifest(service);
