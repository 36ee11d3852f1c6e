import type { Feature } from '../feature.ts';
import { gate } from './gate.ts';

export const supervision: Feature = { open: () => ({ supervision: { gate } }) };
