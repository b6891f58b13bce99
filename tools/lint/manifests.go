package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// set are the manifests of one namespace, as the API server would have them.
type set struct {
	wrong    []string
	names    map[string]bool // kind/name
	pods     []pod
	services []*corev1.Service
	budgets  []*policyv1.PodDisruptionBudget
	policies []*networkingv1.NetworkPolicy
}

// pod is a template of pods, with whose it is.
type pod struct {
	owner    string
	replicas int32
	selector *metav1.LabelSelector
	corev1.PodTemplateSpec
}

func (s *set) complain(where, format string, args ...any) {
	s.wrong = append(s.wrong, where+": "+fmt.Sprintf(format, args...))
}

// manifests decodes every document strictly, as the type that its kind names: a field that the type does not have, one that
// stands twice, a number for a string, a quantity that is none are wrong. Then it looks at what no type says: names and
// labels, and whether what refers to something finds it.
func manifests(text []byte) ([]string, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	s := &set{names: map[string]bool{}}
	reader := k8syaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(document)) > 0 {
			s.read(fmt.Sprintf("document %d", n), document, known)
		}
	}
	if len(s.names) == 0 && len(s.wrong) == 0 {
		return nil, errors.New("there are no manifests")
	}
	for i := range s.pods {
		s.checkPod(&s.pods[i])
	}
	for _, service := range s.services {
		s.checkService(service)
	}
	for _, budget := range s.budgets {
		s.checkBudget(budget)
	}
	for _, policy := range s.policies {
		s.checkPolicy(policy)
	}
	return s.wrong, nil
}

// read decodes a document and keeps what is to be compared.
func (s *set) read(where string, document []byte, known *runtime.Scheme) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		s.complain(where, "%v", err)
		return
	}
	var kind metav1.TypeMeta
	if err := strict.UnmarshalCaseSensitivePreserveInts(text, &kind); err != nil {
		s.complain(where, "%v", err)
		return
	}
	object, err := known.New(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	if err != nil {
		s.complain(where, "%v", err)
		return
	}
	unknown, err := strict.UnmarshalStrict(text, object)
	if meta, ok := object.(metav1.Object); ok {
		where = kind.Kind + " " + meta.GetName()
		s.checkMeta(where, meta)
		if s.names[kind.Kind+"/"+meta.GetName()] {
			s.complain(where, "it stands there twice")
		}
		s.names[kind.Kind+"/"+meta.GetName()] = true
	}
	for _, each := range append(unknown, err) {
		if each != nil {
			s.complain(where, "%v", each)
		}
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		replicas := int32(1)
		if o.Spec.Replicas != nil {
			replicas = *o.Spec.Replicas
		}
		s.pods = append(s.pods, pod{where, replicas, o.Spec.Selector, o.Spec.Template})
	case *batchv1.Job:
		s.pods = append(s.pods, pod{where, 0, nil, o.Spec.Template})
	case *corev1.Service:
		s.services = append(s.services, o)
	case *policyv1.PodDisruptionBudget:
		s.budgets = append(s.budgets, o)
	case *networkingv1.NetworkPolicy:
		s.policies = append(s.policies, o)
	}
}

func (s *set) checkMeta(where string, meta metav1.Object) {
	for _, why := range validation.IsDNS1123Subdomain(meta.GetName()) {
		s.complain(where, "metadata.name: %s", why)
	}
	s.checkLabels(where, meta.GetLabels())
	for key := range meta.GetAnnotations() {
		for _, why := range validation.IsQualifiedName(strings.ToLower(key)) {
			s.complain(where, "annotation %q: %s", key, why)
		}
	}
}

func (s *set) checkLabels(where string, all map[string]string) {
	for key, value := range all {
		for _, why := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
			s.complain(where, "label %s=%s: %s", key, value, why)
		}
	}
}

// chooses reports whether a selector chooses a pod.
func (s *set) chooses(where string, selector *metav1.LabelSelector, p *pod) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		s.complain(where, "selector: %v", err)
		return false
	}
	return compiled.Matches(labels.Set(p.Labels))
}

func (s *set) chosen(selector *metav1.LabelSelector) (pods []*pod) {
	for i := range s.pods {
		if s.chooses("a selector", selector, &s.pods[i]) {
			pods = append(pods, &s.pods[i])
		}
	}
	return pods
}

var (
	restartPolicies = []corev1.RestartPolicy{"", corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	pullPolicies    = []corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	protocols       = []corev1.Protocol{"", corev1.ProtocolTCP, corev1.ProtocolUDP}
	whenImpossible  = []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}
	seccomp         = []corev1.SeccompProfileType{corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeUnconfined}
)

// among complains of a word that the API does not know in a place. (The Go types take any.)
func among[T ~string](s *set, where, what string, word T, known []T) {
	if !slices.Contains(known, word) {
		s.complain(where, "%s: %q is none of %q", what, word, known)
	}
}

func (s *set) checkPod(p *pod) {
	where := p.owner
	s.checkLabels(where, p.Labels)
	if p.selector != nil && !s.chooses(where, p.selector, p) {
		s.complain(where, "its selector does not choose its own pods")
	}
	among(s, where, "restartPolicy", p.Spec.RestartPolicy, restartPolicies)
	if p.Spec.SecurityContext != nil && p.Spec.SecurityContext.SeccompProfile != nil {
		among(s, where, "seccompProfile.type", p.Spec.SecurityContext.SeccompProfile.Type, seccomp)
	}
	if name := p.Spec.ServiceAccountName; name != "" && !s.names["ServiceAccount/"+name] {
		s.complain(where, "there is no ServiceAccount %s", name)
	}
	for _, spread := range p.Spec.TopologySpreadConstraints {
		among(s, where, "topologySpreadConstraints: whenUnsatisfiable", spread.WhenUnsatisfiable, whenImpossible)
		if spread.MaxSkew < 1 || spread.TopologyKey == "" || !s.chooses(where, spread.LabelSelector, p) {
			s.complain(where, "topologySpreadConstraints: it does not spread its own pods")
		}
	}
	volumes := map[string]bool{}
	for _, volume := range p.Spec.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil && !s.names["ConfigMap/"+volume.ConfigMap.Name] {
			s.complain(where, "there is no ConfigMap %s", volume.ConfigMap.Name)
		}
	}
	if len(p.Spec.Containers) == 0 {
		s.complain(where, "it has no container")
	}
	for i := range p.Spec.Containers {
		s.checkContainer(where, &p.Spec.Containers[i], volumes)
	}
}

func (s *set) checkContainer(where string, c *corev1.Container, volumes map[string]bool) {
	where += ", container " + c.Name
	for _, why := range validation.IsDNS1123Label(c.Name) {
		s.complain(where, "its name: %s", why)
	}
	if c.Image == "" {
		s.complain(where, "it has no image")
	}
	among(s, where, "imagePullPolicy", c.ImagePullPolicy, pullPolicies)
	ports := map[string]bool{}
	for _, port := range c.Ports {
		ports[port.Name] = true
		among(s, where, "ports: protocol", port.Protocol, protocols)
		for _, why := range append(validation.IsValidPortNum(int(port.ContainerPort)), validation.IsValidPortName(port.Name)...) {
			s.complain(where, "port %s: %s", port.Name, why)
		}
	}
	for name, probe := range map[string]*corev1.Probe{"startupProbe": c.StartupProbe, "livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil {
			continue
		}
		if port := probe.HTTPGet.Port; port.Type == intstr.String && !ports[port.StrVal] {
			s.complain(where, "%s asks port %s, which it does not have", name, port.StrVal)
		}
		if !strings.HasPrefix(probe.HTTPGet.Path, "/") {
			s.complain(where, "%s asks %q", name, probe.HTTPGet.Path)
		}
	}
	for name, request := range c.Resources.Requests {
		if limit, ok := c.Resources.Limits[name]; ok && request.Cmp(limit) > 0 {
			s.complain(where, "it requests more %s than its limit", name)
		}
	}
	for _, mount := range c.VolumeMounts {
		if !volumes[mount.Name] {
			s.complain(where, "it mounts %s, which is no volume of its pod", mount.Name)
		}
	}
}

func (s *set) checkService(service *corev1.Service) {
	where := "Service " + service.Name
	pods := s.chosen(&metav1.LabelSelector{MatchLabels: service.Spec.Selector})
	if len(service.Spec.Selector) == 0 || len(pods) == 0 {
		s.complain(where, "it chooses no pods")
	}
	for _, port := range service.Spec.Ports {
		among(s, where, "ports: protocol", port.Protocol, protocols)
		for _, why := range validation.IsValidPortNum(int(port.Port)) {
			s.complain(where, "port %s: %s", port.Name, why)
		}
		has := func(p *pod) bool {
			return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
				return slices.ContainsFunc(c.Ports, func(at corev1.ContainerPort) bool { return at.Name == port.TargetPort.StrVal })
			})
		}
		if port.TargetPort.Type == intstr.String && !slices.ContainsFunc(pods, has) {
			s.complain(where, "port %s leads to %s, which no container of its pods has", port.Name, port.TargetPort.StrVal)
		}
	}
}

func (s *set) checkPolicy(policy *networkingv1.NetworkPolicy) {
	where := "NetworkPolicy " + policy.Name
	if len(s.chosen(&policy.Spec.PodSelector)) == 0 {
		s.complain(where, "it chooses no pods")
	}
	for _, kind := range policy.Spec.PolicyTypes {
		among(s, where, "policyTypes", kind, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress})
	}
	var ports []networkingv1.NetworkPolicyPort
	for _, rule := range policy.Spec.Ingress {
		ports = append(ports, rule.Ports...)
	}
	for _, rule := range policy.Spec.Egress {
		ports = append(ports, rule.Ports...)
	}
	for _, port := range ports {
		if port.Protocol != nil {
			among(s, where, "ports: protocol", *port.Protocol, protocols)
		}
	}
}

// checkBudget: a budget that lets no pod go keeps a node from being emptied for ever.
func (s *set) checkBudget(budget *policyv1.PodDisruptionBudget) {
	where := "PodDisruptionBudget " + budget.Name
	pods := s.chosen(budget.Spec.Selector)
	if len(pods) != 1 {
		s.complain(where, "it is for the pods of %d owners, not of one", len(pods))
		return
	}
	replicas := int(pods[0].replicas)
	allowed := 0
	switch {
	case (budget.Spec.MinAvailable == nil) == (budget.Spec.MaxUnavailable == nil):
		s.complain(where, "it needs one of minAvailable and maxUnavailable")
		return
	case budget.Spec.MinAvailable != nil:
		least, err := intstr.GetScaledValueFromIntOrPercent(budget.Spec.MinAvailable, replicas, true)
		if err != nil {
			s.complain(where, "minAvailable: %v", err)
		}
		allowed = replicas - least
	default:
		most, err := intstr.GetScaledValueFromIntOrPercent(budget.Spec.MaxUnavailable, replicas, true)
		if err != nil {
			s.complain(where, "maxUnavailable: %v", err)
		}
		allowed = most
	}
	if allowed < 1 || allowed >= replicas {
		s.complain(where, "of %d pods of %s it lets %d go at once", replicas, pods[0].owner, allowed)
	}
}
