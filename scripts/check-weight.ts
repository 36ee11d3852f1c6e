import { weighInstall, type Weight } from './weigh-install.ts';

const LIMIT: Weight = { bytes: 80e6, packages: 90 };

/**
 * What an installed Troupe puts on the disk: in total, and for each direct dependency what would be gone without it, a line
 * each. Throws over the limit.
 */
export function checkWeight(app: string): string {
  const { total, parts } = weighInstall(app, 'troupe');
  const lines = parts.map(([name, weight]) => line(weight, name));
  const sum = line(total, `in total, of at most ${describe(LIMIT)}`);
  if (total.bytes > LIMIT.bytes || total.packages > LIMIT.packages)
    throw new Error(
      `the default install is over its limit. What most users do not need is an optional peer.\n${sum}`,
    );
  return ['the weight of an install', ...lines, sum].join('\n');
}

function line({ bytes, packages }: Weight, name: string): string {
  return `${megabytes(bytes).padStart(8)} MB ${String(packages).padStart(4)} packages  ${name}`;
}

function describe({ bytes, packages }: Weight): string {
  return `${megabytes(bytes)} MB and ${packages} packages`;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
