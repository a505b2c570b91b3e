import { pluginManifest } from '../../core/gateway/manifest';
import storedResponses from '.';

export = pluginManifest(storedResponses);
