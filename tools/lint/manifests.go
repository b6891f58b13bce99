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
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// set has the manifests of one namespace.
type set struct {
	wrong   []string
	known   *runtime.Scheme
	names   map[string]bool // kind/name
	pods    []corev1.PodTemplateSpec
	objects []metav1.Object
}

func (s *set) complain(where, format string, args ...any) {
	s.wrong = append(s.wrong, where+": "+fmt.Sprintf(format, args...))
}

// manifests returns the faults of manifests.
func manifests(text []byte) ([]string, error) {
	s := &set{known: runtime.NewScheme(), names: map[string]bool{}}
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(s.known); err != nil {
			return nil, err
		}
	}
	reader := k8syaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && len(bytes.TrimSpace(document)) > 0 {
			err = s.read(fmt.Sprintf("document %d", n), document)
		}
		if err != nil {
			s.complain(fmt.Sprintf("document %d", n), "%v", err)
		}
	}
	if len(s.objects) == 0 {
		return nil, errors.New("there are no manifests")
	}
	for _, object := range s.objects {
		s.checkReferences(object)
	}
	return s.wrong, nil
}

// read decodes a document strictly into the type of its kind.
func (s *set) read(where string, document []byte) error {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	var kind metav1.TypeMeta
	if err := strict.UnmarshalCaseSensitivePreserveInts(text, &kind); err != nil {
		return err
	}
	if strings.HasPrefix(kind.APIVersion, "monitoring.coreos.com/") {
		return nil // the Prometheus operator's; their types are not the API's
	}
	decoded, err := s.known.New(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	if err != nil {
		return err
	}
	unknown, err := strict.UnmarshalStrict(text, decoded)
	for _, each := range unknown {
		s.complain(where+", "+kind.Kind, "%v", each)
	}
	if err != nil {
		return err
	}
	object := decoded.(metav1.Object)
	s.objects = append(s.objects, object)
	s.names[kind.Kind+"/"+object.GetName()] = true
	switch o := object.(type) {
	case *appsv1.Deployment:
		s.pods = append(s.pods, o.Spec.Template)
	case *batchv1.Job:
		s.pods = append(s.pods, o.Spec.Template)
	case *corev1.Pod:
		s.pods = append(s.pods, corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec})
	}
	return nil
}

// chosen returns the pods that a selector matches; none is an error.
func (s *set) chosen(where string, selector *metav1.LabelSelector) (pods []corev1.PodTemplateSpec) {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		s.complain(where, "selector: %v", err)
		return nil
	}
	for _, pod := range s.pods {
		if compiled.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		s.complain(where, "it chooses no pods")
	}
	return pods
}

// checkReferences reports an object's references to missing objects.
func (s *set) checkReferences(object metav1.Object) {
	where := fmt.Sprintf("%T %s", object, object.GetName())
	switch o := object.(type) {
	case *appsv1.Deployment:
		s.chosen(where, o.Spec.Selector)
		s.checkPod(where, o.Spec.Template.Spec)
	case *batchv1.Job:
		s.checkPod(where, o.Spec.Template.Spec)
	case *corev1.Pod:
		s.checkPod(where, o.Spec)
	case *networkingv1.NetworkPolicy:
		s.chosen(where, &o.Spec.PodSelector)
	case *policyv1.PodDisruptionBudget:
		s.chosen(where, o.Spec.Selector)
	case *corev1.Service:
		pods := s.chosen(where, &metav1.LabelSelector{MatchLabels: o.Spec.Selector})
		for _, port := range o.Spec.Ports {
			has := func(pod corev1.PodTemplateSpec) bool { return hasPort(pod.Spec.Containers, port.TargetPort) }
			if !slices.ContainsFunc(pods, has) {
				s.complain(where, "port %s leads to %s, which no container of its pods has", port.Name, port.TargetPort.StrVal)
			}
		}
	}
}

// hasPort reports whether a container has a service's target port.
func hasPort(containers []corev1.Container, port intstr.IntOrString) bool {
	return port.Type == intstr.Int || slices.ContainsFunc(containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(at corev1.ContainerPort) bool { return at.Name == port.StrVal })
	})
}

func (s *set) checkPod(where string, pod corev1.PodSpec) {
	if name := pod.ServiceAccountName; name != "" && !s.names["ServiceAccount/"+name] {
		s.complain(where, "there is no ServiceAccount %s", name)
	}
	volumes := map[string]bool{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil && !s.names["ConfigMap/"+volume.ConfigMap.Name] {
			s.complain(where, "there is no ConfigMap %s", volume.ConfigMap.Name)
		}
	}
	for _, c := range pod.Containers {
		for _, mount := range c.VolumeMounts {
			if !volumes[mount.Name] {
				s.complain(where, "it mounts %s, which is no volume of its pod", mount.Name)
			}
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe != nil && probe.HTTPGet != nil && !hasPort([]corev1.Container{c}, probe.HTTPGet.Port) {
				s.complain(where, "a probe requests port %s, which its container does not have", probe.HTTPGet.Port.StrVal)
			}
		}
	}
}
