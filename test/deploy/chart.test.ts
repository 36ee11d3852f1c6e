import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { METRICS } from '../../src/events/metrics.ts';
import { findHelm } from '../services/helm.ts';
import { readRoot, ROOT, unknownIn } from './files.ts';

const CHART = 'deploy/helm/troupe';
const TEMPLATES = readdirSync(path.join(ROOT, CHART, 'templates'));
const helm = findHelm();

test('every value that a template reads has a default, and every default is read', () => {
  const values = parse(readRoot(`${CHART}/values.yaml`)) as Record<string, unknown>;
  const text = TEMPLATES.map((name) => readRoot(`${CHART}/templates/${name}`)).join('\n');
  const read = new Set([...text.matchAll(/\.Values\.([\w.]+)/g)].map(([, each = '']) => each));
  const valueAt = (dotted: string) =>
    dotted
      .split('.')
      .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], values);
  expect([...read].filter((dotted) => valueAt(dotted) === undefined)).toEqual([]);
  // `.part` is `api` or `worker`, and `with .Values.image` reads its members.
  const isRead = (name: string) =>
    [...read].some((each) => each === name || each.startsWith(`${name}.`)) ||
    new RegExp(`\\.(?:part|Values)?\\.?${name.split('.').at(-1)}\\b`).test(text);
  const names = Object.entries(values).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.keys(value).map((each) => `${name}.${each}`)
      : [name],
  );
  expect(names.filter((name) => !isRead(name))).toEqual([]);
});

interface Resource {
  kind: string;
  metadata: { name: string; labels: Record<string, string> };
  spec: {
    replicas?: number;
    selector?: { matchLabels: Record<string, string> };
    template?: { metadata: { labels: Record<string, string> }; spec: Pod };
    triggers?: { metadata: { query: string; threshold: string } }[];
  };
  data?: Record<string, string>;
}
interface Pod {
  securityContext: object;
  automountServiceAccountToken: boolean;
  containers: [
    {
      args: string[];
      envFrom: object[];
      securityContext: object;
      ports: { containerPort: number }[];
      livenessProbe: { httpGet: { path: string } };
      readinessProbe: { httpGet: { path: string } };
      volumeMounts: { mountPath: string; readOnly?: boolean }[];
    },
  ];
}

/** A helm built from source takes an old version for the cluster's. */
const CLUSTER = ['--kube-version', '1.30.0'];
const SETTINGS = ['existingSecret=secrets', 'agents.content=agents'];

function run(...args: string[]): { ok: boolean; output: string } {
  const { status, stdout, stderr } = spawnSync(helm ?? '', args, { cwd: ROOT, encoding: 'utf8' });
  return { ok: status === 0, output: status === 0 ? stdout : stderr };
}
const set = (settings: readonly string[]) => settings.flatMap((each) => ['--set', each]);

function render(...settings: string[]): Resource[] {
  const { ok, output } = run('template', 'troupe', CHART, ...CLUSTER, ...set([...SETTINGS, ...settings]));
  if (!ok) throw new Error(output);
  return parseAllDocuments(output).flatMap((each) => {
    const value = each.toJS() as Resource | null;
    return value === null ? [] : [value];
  });
}

const KEDA = ['keda.enabled=true', 'keda.prometheusAddress=http://prometheus:9090'];

if (helm === null) test.skip('helm renders the chart (skipped: neither helm on PATH nor built)', () => {});
else
  describe('helm', () => {
    const resources = render();
    const pods = resources.flatMap(({ spec }) => (spec?.template ? [spec.template.spec] : []));

    test('finds nothing to complain about, whatever is switched on', () => {
      const all = [...SETTINGS, ...KEDA, 'podMonitor.enabled=true', 'api.extraArgs={--read-only}'];
      const { ok, output } = run('lint', '--strict', CHART, ...CLUSTER, ...set(all));
      expect({ ok, output }).toMatchObject({ ok: true });
    });

    test('refuses a release without a secret, agents, or an address for KEDA, and says what to set', () => {
      const refused = (...settings: string[]) =>
        run('template', 'troupe', CHART, ...CLUSTER, ...set(settings));
      expect(refused('agents.content=agents')).toMatchObject({
        ok: false,
        output: expect.stringContaining('existingSecret'),
      });
      expect(refused('existingSecret=secrets').output).toContain('set agents.content');
      expect(refused(...SETTINGS, 'keda.enabled=true').output).toContain('set keda.prometheusAddress');
    });

    test('makes an API and workers whose commands exist, without rights, on read-only file systems', () => {
      expect(pods).toHaveLength(2);
      for (const pod of pods) {
        const [container] = pod.containers;
        expect(unknownIn(container.args)).toEqual([]);
        expect(container.args).toContain(String(container.ports[0]?.containerPort));
        expect(container.envFrom).toEqual([{ secretRef: { name: 'secrets' } }]);
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
        expect(pod.automountServiceAccountToken).toBe(false);
        const writable = container.volumeMounts.filter(({ readOnly }) => !readOnly);
        expect(writable.map(({ mountPath }) => mountPath)).toEqual(['/tmp']);
        expect(container.livenessProbe.httpGet.path).toBe('/healthz');
        expect(container.readinessProbe.httpGet.path).toBe('/readyz');
      }
    });

    test('selects with every budget and service the pods of one part', () => {
      const labels = resources.flatMap(({ spec }) => (spec?.template ? [spec.template.metadata.labels] : []));
      const selects = (selector: Record<string, string>) =>
        labels.filter((each) => Object.entries(selector).every(([name, value]) => each[name] === value));
      const selectors = resources.flatMap(({ kind, spec }) =>
        kind === 'Service'
          ? [spec.selector as unknown as Record<string, string>]
          : spec?.selector
            ? [spec.selector.matchLabels]
            : [],
      );
      expect(selectors).toHaveLength(5);
      expect(selectors.map((each) => selects(each).length)).toEqual([1, 1, 1, 1, 1]);
      expect(resources.filter(({ kind }) => kind === 'PodDisruptionBudget')).toHaveLength(2);
    });

    test('scales workers by the wakes of the queue, a metric that Troupe exports', () => {
      const scaled = render(...KEDA);
      const trigger = scaled.find(({ kind }) => kind === 'ScaledObject')?.spec.triggers?.[0]?.metadata;
      expect(trigger?.query).toContain('troupe_queue_wakes{state=~"waiting|active"');
      expect(METRICS).toHaveProperty('queue_wakes.labels.state');
      expect(Number(trigger?.threshold)).toBeLessThan(64);
      const worker = (all: Resource[]) =>
        all.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'troupe-worker');
      expect(worker(resources)?.spec.replicas).toBe(2);
      // KEDA's count, which an upgrade of the chart must not reset.
      expect(worker(scaled)?.spec).not.toHaveProperty('replicas');
    });
  });
